"""The context engine: a stable system prompt, compaction that loses nothing, and the time beside each message."""

from operant.sdk import Extension

extension = Extension(name="context", setup="operant.ext.context.engine:setup", skill="context")
