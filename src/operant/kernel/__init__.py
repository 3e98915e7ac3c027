"""The kernel: an append-only history, a projection of it, a gate, hooks, and one loop."""
