"""A home for a test."""

from tests.cli.conftest import operant

__all__ = ["operant"]
