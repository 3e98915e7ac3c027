"""MCP both ways: tools, resources and prompts of other servers, and this agent as a server for other programs."""

from operant.sdk import Extension

extension = Extension(name="mcp", setup="operant.ext.mcp.setup:setup", settings="operant.ext.mcp.settings:McpSettings")
