"""The extensions: a folder is a feature."""
