"""Tools every agent has: a shell, files of the workspace, search, and the history of the conversation."""

from operant.sdk import Extension

extension = Extension(
    name="tools", setup="operant.ext.tools.setup:setup", settings="operant.ext.tools.settings:ToolsSettings"
)
