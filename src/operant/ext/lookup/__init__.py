"""Looking things up: search, usage, letters, what became of a message, blobs."""

from operant.sdk import Extension

extension = Extension(name="lookup", setup="operant.ext.lookup.lookup:setup")
