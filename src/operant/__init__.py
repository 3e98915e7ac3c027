"""Operant: a personal agent runtime with one durable log, a small kernel and everything else in extensions."""

__version__ = "0.1.0"
