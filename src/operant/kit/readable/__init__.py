"""Readable text out of web pages, in a program of its own (`python -m operant.kit.readable`): pages are hostile."""
