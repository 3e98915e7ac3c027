"""Documents of every kind become words; hostile ones become a sentence."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.kit.documents.markup import html_text, read_xml
from operant.kit.documents.notebooks import read_notebook
from operant.kit.documents.office import read_office
from operant.kit.documents.pictures import LONGEST_SIDE, dimensions, read_picture
from operant.kit.documents.portable import read_pdf
from operant.kit.documents.request import Answer, CannotRead, Request, kind_of, read_answer
from operant.kit.documents.rtf import read_rtf
from tests.kit import papers


def words(answer: Answer) -> str:
    return answer.body.decode()


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (papers.docx, "# Plan\none\ttwo\nthree\n- item\n| a | b |"),
        (papers.xlsx, "\n## Sheet Costs\nrent\t\t800.5\nlight\t2023-03-15\tTRUE"),
        (papers.pptx, "\n## Slide 1\nfirst\n[Notes]\nsay hello\n\n## Slide 2\nlast"),
        (papers.odt, "## Head\na  b\tc\n- item"),
        (papers.ods, "\n## Sheet T\nx\ty\ty"),
        (papers.odp, "\n## p1\nwords"),
        (papers.epub, "# Book\n\n# One\nIt was so."),
    ],
    ids=["docx", "xlsx", "pptx", "odt", "ods", "odp", "epub"],
)
def test_office_files_become_plain_text(made, text: str) -> None:
    assert words(read_office(io.BytesIO(made()))) == text


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;&b;</a>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]><a/>',
        "<a>" * 1000 + "</a>" * 1000,
        "<a><b></a>",
        "<a>&nbsp;</a>",
    ],
)
def test_xml_of_strangers_declares_nothing(xml: str) -> None:
    with pytest.raises(CannotRead):
        read_xml(xml.encode())


def test_a_part_that_grows_too_large_is_refused() -> None:
    bomb = papers.zip_of({"word/document.xml": b" " * (33 * 2**20)})
    assert len(bomb) < 100_000
    with pytest.raises(CannotRead, match="larger than"):
        read_office(io.BytesIO(bomb))


def test_a_zip_that_is_no_office_file_says_so() -> None:
    with pytest.raises(CannotRead, match="no office file"):
        read_office(io.BytesIO(papers.zip_of({"x": "y"})))
    with pytest.raises(zipfile.BadZipFile):
        read_office(io.BytesIO(b"PK\x03\x04" + bytes(100)))


@given(st.binary(max_size=200))
def test_rtf_is_read_whatever_it_says(data: bytes) -> None:
    words(read_rtf(io.BytesIO(b"{\\rtf1" + data)))


def test_rtf_has_words_and_no_fonts() -> None:
    source = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator x;}\b Gr\'fc\'dfe\b0\par \u8364?uro\tab\{x\}}"
    )
    assert words(read_rtf(io.BytesIO(source))) == "Grüße\n€uro\t{x}"


@given(st.text(max_size=200))
def test_html_is_read_whatever_it_says(text: str) -> None:
    html_text(text.encode())


def test_a_notebook_shows_cells_with_numbers_and_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# T\n", "x"]},
        {
            "cell_type": "code",
            "execution_count": 2,
            "source": "1/0",
            "outputs": [
                {"output_type": "stream", "text": ["hi\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "AAAA"}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m", "v"]},
            ],
        },
    ]
    said = words(read_notebook(io.BytesIO(json.dumps({"cells": cells}).encode())))
    assert said.splitlines() == [
        "--- cell 1: markdown",
        "# T",
        "x",
        "--- cell 2: code [2]",
        "1/0",
        "--- output of cell 2",
        "hi",
        "--- output of cell 2",
        "42",
        "[also image/png]",
        "--- output of cell 2",
        "E",
        "v",
    ]


@pytest.mark.parametrize("data", [b"[]", b"{}", b"{", b"[" * 100_000, b'{"cells": 3}'])
def test_what_is_no_notebook_says_so(data: bytes) -> None:
    with pytest.raises(CannotRead, match="not a notebook"):
        read_notebook(io.BytesIO(data))


# ---------------------------------------------------------------------------- pictures


def test_a_small_picture_is_shown_as_it_is() -> None:
    data = papers.png(30, 20)
    answer = read_picture(io.BytesIO(data))
    assert (answer.body, answer.media_type) == (data, "image/png")
    assert answer.note == f"PNG, 30×20 pixels, {len(data)} bytes"  # noqa: RUF001


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_large_picture_is_scaled(kind: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install 'operant[files]'")
    source = io.BytesIO()
    image.new("RGB", (3000, 1000), (10, 200, 30)).save(source, kind)
    assert dimensions(source.getvalue()) == (f"image/{kind.lower()}", 3000, 1000)
    answer = read_picture(io.BytesIO(source.getvalue()))
    made = dimensions(answer.body)
    assert made is not None and made[1] == LONGEST_SIDE
    assert answer.note.startswith(f"{kind}, 3,000×1,000 pixels") and "shown as 1,568×523" in answer.note  # noqa: RUF001


def test_without_pillow_a_large_picture_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert read_picture(io.BytesIO(papers.png(LONGEST_SIDE, 20))).kind == "image"
    with pytest.raises(CannotRead, match=r"pip install 'operant\[files\]'"):
        read_picture(io.BytesIO(papers.png(LONGEST_SIDE + 1, 20)))


def test_without_any_reader_a_pdf_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    with pytest.raises(CannotRead, match=r"pip install 'operant\[files\]', or install poppler-utils"):
        read_pdf(io.BytesIO(papers.pdf("x")), 1, 1, lambda answer: None)


def test_a_picture_that_lies_about_its_size_is_refused() -> None:
    """D8, a bomb of pixels: ten thousand million in a few bytes."""
    data = bytearray(papers.png(8, 8))
    data[16:24] = (100_000).to_bytes(4, "big") * 2
    with pytest.raises(CannotRead, match="too large"):
        read_picture(io.BytesIO(bytes(data)))


@given(st.binary(max_size=64), st.sampled_from([b"\xff\xd8", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"\x89PNG\r\n\x1a\n"]))
def test_dimensions_are_found_or_not(data: bytes, magic: bytes) -> None:
    dimensions(magic + data)


# ---------------------------------------------------------------------------- the program


def asked(tmp_path: Path, name: str, data: bytes, **how: int) -> Answer:
    (tmp_path / name).write_bytes(data)
    request = Request(root=str(tmp_path), roots={}, path=name, kind=kind_of(name, data[:4096]), **how)
    argv = [sys.executable, "-I", "-m", "operant.kit.documents", request.encode()]
    return read_answer(subprocess.run(argv, capture_output=True, check=True, timeout=20).stdout)


def test_the_program_reads_pages_of_a_pdf(tmp_path: Path) -> None:
    data = papers.pdf("one", "two", "three")
    answer = asked(tmp_path, "a.pdf", data, offset=2, limit=1)
    assert (answer.kind, words(answer).strip("\f\n "), answer.first) == ("pages", "two", 2)


def test_a_pdf_is_read_by_pdftotext_where_there_is_no_pypdf(tmp_path: Path) -> None:
    script = (
        "import sys, os; sys.modules['pypdf'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pypdf' else real(name, *a)\n"
        "from operant.kit.documents.__main__ import main; main(sys.argv[1])"
    )
    (tmp_path / "a.pdf").write_bytes(papers.pdf("one", "two", "three"))
    request = Request(root=str(tmp_path), roots={}, path="a.pdf", kind="pdf", offset=2, limit=2)
    argv = [sys.executable, "-c", script, request.encode()]
    answer = read_answer(subprocess.run(argv, capture_output=True, check=True, timeout=20).stdout)
    if "pip install" in words(answer):
        pytest.skip("needs pdftotext: apt install poppler-utils")
    assert [page.strip() for page in words(answer).split("\f")] == ["two", "three", ""]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", b"%PDF-1.4\n" + b"\xff" * 1000),
        ("a.docx", b"PK\x03\x04" + bytes(500)),
        ("a.docx", papers.docx()[:-30]),
        ("a.png", papers.png(2000, 2000)[:500]),
        ("a.zip", b"PK\x03\x04zip"),
        ("a.tgz", b"\x1f\x8b\x08\0junk"),
        ("a.xz", b"\xfd7zXZ\0junk"),
    ],
)
def test_damaged_files_are_a_sentence(tmp_path: Path, name: str, data: bytes) -> None:
    answer = asked(tmp_path, name, data)
    said = words(answer)
    assert (answer.kind, said[-1:]) == ("refused", ".") or "not to be unpacked" in said


def test_an_encrypted_pdf_says_so(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf: pip install 'operant[files]'")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(papers.pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    assert "encrypted with a password" in words(asked(tmp_path, "a.pdf", out.getvalue()))


def test_an_answer_that_is_none_is_damage() -> None:
    for data in (b"", b"Traceback", b'{"kind": 1, "x": 2}\n'):
        with pytest.raises(CannotRead):
            read_answer(data)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.ipynb", b' {"cells"', "notebook"),
        ("a.ipynb", b"text", ""),
        ("a.docx", b"PK\x03\x04", "office"),
        ("a.zip", b"PK\x03\x04", "archive"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "image"),
        ("picture", b"RIFF....WEBP", "image"),
        ("a.tar", bytes(257) + b"ustar", "archive"),
        ("a.csv", b"a,b", ""),
        ("a.pdf", b"plain words", ""),
    ],
)
def test_the_first_bytes_tell_the_kind(name: str, head: bytes, kind: str) -> None:
    assert kind_of(name, head) == kind
