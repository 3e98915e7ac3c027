"""Messages between agents: put on record, started, or owed an answer."""

from operant.sdk import Extension

extension = Extension(
    name="a2a", setup="operant.ext.a2a.setup:setup", settings="operant.ext.a2a.settings:A2aSettings", skill="a2a"
)
