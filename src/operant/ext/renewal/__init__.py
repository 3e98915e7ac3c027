"""An agent has Operant started again, and goes on with its task afterwards."""

from operant.sdk import Extension

extension = Extension(name="renewal", setup="operant.ext.renewal.setup:setup")
