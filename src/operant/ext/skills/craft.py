"""Write skills, keep what was replaced, and lend a skill's files to a sandbox."""

from __future__ import annotations

from operant.ext.skills.format import FILE, check_skill
from operant.ext.skills.shelf import Skill
from operant.kit.beneath import Absent, Beneath, FileError
from operant.sdk import Agent, Host, Text, ToolResult, failed

FOLDER = "skills"
HISTORY = ".history"
LENT = ".skills"
"""Where in a workspace the files of a skill from elsewhere stand, because a sandbox sees nothing else."""
_LARGEST = 1 << 20


class Craft:
    """Change the files of skills."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def write(self, agent: Agent, name: str, file: str, text: str) -> ToolResult:
        """Write a file of one of the agent's own skills; the version before it stays."""
        folder = f"{FOLDER}/{name}"
        faults = check_skill(text, name) if file == FILE else []
        if faults or "/" in name or not name:
            return failed(f"This is not a skill yet: {'; '.join(faults) or 'its name cannot be one'}.")
        try:
            with Beneath(agent.workspace) as files:
                kept = self._keep(files, folder, file)
                files.write_atomic(f"{folder}/{file}", text.encode())
        except FileError as error:
            return failed(str(error))
        said = f" The version before it is {kept}." if kept else ""
        return ToolResult(parts=(Text(text=f"Wrote {folder}/{file}.{said}"),))

    def lend(self, skill: Skill, script: str, agent: Agent) -> str:
        """Return where a script stands that the sandbox can see. Raises `FileError`."""
        name = script.removeprefix("scripts/")
        place = f"{LENT}/{skill.info.name}-{skill.info.digest[:12]}"
        with Beneath(skill.folder) as own, Beneath(agent.workspace) as workspace:
            own.read_bytes(f"scripts/{name}", _LARGEST)
            for found in own.walk(".", frozenset((HISTORY,))):
                target = f"{place}/{found.path}"
                data = own.read_bytes(found.path, _LARGEST)
                if not _same(workspace, target, data):
                    mode = 0o755 if found.path.startswith("scripts/") else None
                    workspace.write_atomic(target, data, mode=mode)
            return workspace.path_of(f"{place}/scripts/{name}")

    def _keep(self, files: Beneath, folder: str, file: str) -> str:
        """Put what is there now into the history, and return its place."""
        try:
            data = files.read_bytes(f"{folder}/{file}", _LARGEST)
        except Absent:
            return ""
        place = f"{folder}/{HISTORY}/{file.replace('/', '_')}.{self._host.clock.now()}"
        files.write_atomic(place, data)
        return place


def _same(files: Beneath, path: str, data: bytes) -> bool:
    try:
        return files.read_bytes(path, _LARGEST) == data
    except FileError:
        return False
