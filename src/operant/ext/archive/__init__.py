"""Copies of whole sessions: forks, exports, imports."""

from operant.sdk import Extension

extension = Extension(name="archive", setup="operant.ext.archive.archive:setup")
