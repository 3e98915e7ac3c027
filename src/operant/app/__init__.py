"""The composition root: configuration, home, and the only place that names concrete classes."""
