"""The log file: one JSON object a line, rotated by size, with secrets taken out; nothing goes to standard output."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from operant.kit.secret import Secret

MOST_BYTES = 10 * 1024 * 1024
KEPT = 5


class JsonLog:
    """Write what `operant.*` loggers say to a file while the context is open.

    `now` returns microseconds since 1970. A disk that refuses the file costs log lines, never the program.
    """

    def __init__(self, path: Path, now: Callable[[], int]) -> None:
        self._lines = _Lines(now)
        self._handler = _Rotating(path)
        self._handler.setFormatter(self._lines)
        self._logger = logging.getLogger("operant")
        self._before = (logging.NOTSET, True)

    def hide(self, secrets: Sequence[Secret]) -> None:
        """Take these out of every line from now on."""
        self._lines.secrets = sorted({one.reveal() for one in secrets if one}, key=len, reverse=True)

    def __enter__(self) -> JsonLog:
        self._before = (self._logger.level, self._logger.propagate)
        self._logger.addHandler(self._handler)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._logger.removeHandler(self._handler)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)
        self._handler.close()


class _Lines(logging.Formatter):
    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self.secrets: list[str] = []
        self._now = now

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "at": self._now(),
            "level": record.levelname.lower(),
            "part": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        clean = {key: self._clean(value) if isinstance(value, str) else value for key, value in said.items()}
        return json.dumps(clean, ensure_ascii=False)

    def _clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


class _Rotating(logging.Handler):
    """Append to a private file; a full one is kept under `.1`, the one before under `.2`, and so on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._handle = -1
        self._size = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record).encode("utf-8", "replace") + b"\n"
            if self._handle < 0:
                self._open()
            if self._size + len(line) > MOST_BYTES and self._size:
                self._rotate()
            self._size += os.write(self._handle, line)
        except (OSError, ValueError, TypeError):
            self._shut()  # the next line tries again

    def close(self) -> None:
        self._shut()
        super().close()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._handle = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._handle).st_size

    def _rotate(self) -> None:
        self._shut()
        for number in range(KEPT - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._open()

    def _shut(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
