"""Models: who provides them, which one is used, and what happens when one fails."""

from operant.sdk import Extension

extension = Extension(
    name="providers", setup="operant.ext.providers.setup:setup", settings="operant.ext.providers.settings:Providers"
)
