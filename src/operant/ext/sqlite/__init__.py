"""The store in one SQLite file: history, queues, values, usage, and blobs beside it."""

from operant.sdk import Extension

extension = Extension(
    name="sqlite",
    setup="operant.ext.sqlite.setup:setup",
    settings="operant.ext.sqlite.settings:StoreSettings",
    section="store",
    essential=True,
)
