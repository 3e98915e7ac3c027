"""Skills of the open Agent Skills standard: what an agent reads when a task needs it."""

from operant.sdk import Extension

extension = Extension(
    name="skills", setup="operant.ext.skills.setup:setup", settings="operant.ext.skills.settings:SkillSettings"
)
