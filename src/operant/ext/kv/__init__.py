"""Small values by key that agents, jobs and people keep."""

from operant.sdk import Extension

extension = Extension(name="kv", setup="operant.ext.kv.kv:setup")
