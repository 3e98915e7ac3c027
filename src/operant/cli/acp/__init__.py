"""`operant acp`: the Agent Client Protocol of Zed and JetBrains, over standard input and output."""
