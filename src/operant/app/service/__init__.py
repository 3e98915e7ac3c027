"""Operant as a service of the system: what is written for it, and who keeps it running."""
