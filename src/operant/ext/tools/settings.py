"""What can be set about the built-in tools."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from operant.sdk import Record

PROTECTED = (
    ".git/hooks/**",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".git/modules/**",
    "git~[0-9]*",
    ".gitmodules",
    ".gitconfig",
    ".husky/**",
    ".env*",
    "env~[0-9]*",
    ".ssh/**",
    "ssh~[0-9]*",
    ".gnupg/**",
    ".aws/**",
    "authorized_keys*",
    ".bash*",
    ".zsh*",
    ".zprofile",
    ".zlogin",
    ".profile",
    ".login",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".inputrc",
    ".vimrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".mcp.json",
    ".vscode/**",
    ".idea/**",
    ".claude/**",
    ".config/systemd/**",
    ".config/autostart/**",
    ".config/fish/**",
    "operant.yaml",
    "AGENT.md",
)
"""Files that programs obey or that hold keys: naming one here keeps tools from writing it, there or not yet there."""


class ToolsSettings(Record, forbid_unknown_fields=True):
    """Settings of the built-in tools."""

    shell: Annotated[str, Meta(description="Program that runs commands; empty: bash if there, else sh.")] = ""
    env: Annotated[tuple[str, ...], Meta(description="Environment variables that commands get as well.")] = ()
    shared: Annotated[str, Meta(description="Directory that every workspace sees as `shared`.")] = ""
    protected: Annotated[
        tuple[str, ...], Meta(description="More names that file tools do not write, such as `deploy/**`.")
    ] = ()
    max_file_bytes: Annotated[int, Meta(ge=1, description="Largest file that is read or edited whole.")] = 10_000_000
    max_document_bytes: Annotated[
        int, Meta(ge=1, description="Largest picture, PDF, office file or archive that is looked into.")
    ] = 100_000_000
    max_sent_bytes: Annotated[int, Meta(ge=1, description="Largest file that is sent to a person.")] = 50_000_000
    max_spool_bytes: Annotated[int, Meta(ge=0, description="How much of a command's output is kept.")] = 16 * 2**20
    search_timeout_s: Annotated[float, Meta(gt=0, description="How long a search in files may take.")] = 20.0
