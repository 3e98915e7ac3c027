"""The web: reading pages, whatever it takes to get at them, and searching."""

from operant.sdk import Extension

extension = Extension(name="web", setup="operant.ext.web.setup:setup", settings="operant.ext.web.settings:WebSettings")
