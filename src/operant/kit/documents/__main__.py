"""Read one file, as `kit/documents/request.py` has it, and write the answer."""

from __future__ import annotations

import json
import lzma
import os
import sys
import tarfile
import zipfile
import zlib
from typing import BinaryIO

from operant.kit.beneath import Beneath, FileError
from operant.kit.documents.request import Answer, CannotRead, Request

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    NotImplementedError,
)


class Program:
    """The program: its words go to `out`, and nothing that a library says does."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def run(self, request: Request) -> None:
        """Answer a request."""
        try:
            answer = self._answer(request)
        except (FileError, CannotRead) as error:
            answer = _refused(str(error))
        except (MemoryError, RecursionError):
            answer = _refused("It needs more memory than reading may take.")
        except _DAMAGED as error:
            answer = _refused(f"It is damaged: {str(error)[:200] or type(error).__name__}.")
        self.write(answer)

    def write(self, answer: Answer) -> None:
        """Write an answer, or the beginning of one."""
        self._out.write(answer.encode())
        self._out.flush()

    def _answer(self, request: Request) -> Answer:
        with Beneath(request.root, roots=request.roots) as files, files.open_read(request.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > request.largest:
                raise CannotRead(f"It is too large: {size:,} bytes, and {request.largest:,} are the most that is read.")
            return self._read(request, file)

    def _read(self, request: Request, file: BinaryIO) -> Answer:
        """Let the reader of its kind read it; each is imported only when it is needed."""
        match request.kind:
            case "image":
                from operant.kit.documents.pictures import read_picture

                return read_picture(file)
            case "pdf":
                from operant.kit.documents.portable import read_pdf

                return read_pdf(file, request.offset, request.limit, self._hand_over)
            case "office":
                from operant.kit.documents.office import read_office

                return read_office(file)
            case "notebook":
                from operant.kit.documents.notebooks import read_notebook

                return read_notebook(file)
            case "rtf":
                from operant.kit.documents.rtf import read_rtf

                return read_rtf(file)
            case "archive":
                from operant.kit.archives import list_archive

                return Answer(kind="text", body=list_archive(file, request.path).encode("utf-8", "replace"))
            case _:
                raise CannotRead(f"Nothing here reads {request.kind!r}.")

    def _hand_over(self, answer: Answer) -> None:
        """Write the head of an answer, and let standard output be what the next program has."""
        self.write(answer)
        os.dup2(self._out.fileno(), 1)


def _refused(sentence: str) -> Answer:
    return Answer(kind="refused", body=sentence.encode("utf-8", "replace"))


def main(argument: str) -> None:
    """Answer on what was standard output; what libraries print goes nowhere."""
    out = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    Program(out).run(Request(**json.loads(argument)))


if __name__ == "__main__":
    main(sys.argv[1])
