"""Approvals per tool and pattern; secrets kept out of history, messages and child processes."""

from operant.sdk import Extension

extension = Extension(
    name="guard",
    setup="operant.ext.guard.doors:setup",
    settings="operant.ext.guard.doors:GuardSettings",
    essential=True,
)
