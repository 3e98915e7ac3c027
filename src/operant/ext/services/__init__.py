"""Services of skills: processes in any language that hook, offer tools and commands, and make syscalls."""

from operant.sdk import Extension

extension = Extension(
    name="services",
    setup="operant.ext.services.setup:setup",
    settings="operant.ext.services.settings:ServiceSettings",
    essential=True,
)
