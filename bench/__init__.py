"""Measurements: medians and ratios against a bare loop, and against peers where they are installed."""
