"""Tools that are found when they are needed, so that a hundred of them cost no more than two."""

from operant.sdk import Extension

extension = Extension(name="toolbox", setup="operant.ext.toolbox.setup:setup")
