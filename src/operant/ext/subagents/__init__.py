"""Sub-agents: a task of its own session, done by the agent itself or by one of its helpers."""

from operant.sdk import Extension

extension = Extension(
    name="subagents",
    setup="operant.ext.subagents.setup:setup",
    settings="operant.ext.subagents.settings:SubagentSettings",
)
