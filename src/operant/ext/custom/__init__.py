"""Tools that are Python files in an agent's workspace: `tools/*.py`."""

from operant.sdk import Extension

extension = Extension(name="custom", setup="operant.ext.custom.setup:setup")
