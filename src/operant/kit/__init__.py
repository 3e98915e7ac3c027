"""Leaf helpers that know nothing of agents."""
