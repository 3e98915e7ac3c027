"""Read the tables of spreadsheets, a row a line with tabs between the cells."""

from __future__ import annotations

import datetime
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from operant.kit.documents.markup import local, read_part, read_xml

_MOST_COLUMNS = 1_000
_MOST_REPEATS = 100
_DATE_FORMATS = frozenset((*range(14, 23), *range(45, 48)))
_DATE_LETTERS = re.compile(r"[ymdhs]", re.IGNORECASE)
_NOT_FORMAT = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_EPOCH = datetime.datetime(1899, 12, 30)  # noqa: DTZ001 - what spreadsheets count from, in no time zone


def xlsx_lines(archive: zipfile.ZipFile, names: set[str]) -> Iterator[str]:
    """Yield the rows of every sheet of an Excel file."""
    main = "xl/workbook.xml"
    workbook = read_xml(read_part(archive, main))
    strings = _shared_strings(archive, names)
    dates = _date_styles(archive, names)
    relations = _targets(archive, names)
    for sheet in workbook.iter("sheet"):
        part = relations.get(sheet.get("r:id") or "", "")
        hidden = " (hidden)" if sheet.get("state") in ("hidden", "veryHidden") else ""
        yield f"\n## Sheet {sheet.get('name') or ''}{hidden}"
        if part in names:
            rows = read_xml(read_part(archive, part)).iter("row")
            yield from (_row(row, strings, dates) for row in rows)


def ods_lines(table: Element, words: Callable[[Element], str]) -> Iterator[str]:
    """Yield the rows of a table of an OpenDocument file."""
    if name := table.get("name"):
        yield f"\n## Sheet {name}"
    empty = 0
    for row in table.iter("table-row"):
        line = "\t".join(_open_cells(row, words)).rstrip("\t")
        if not line:
            empty += 1
            continue
        yield from [""] * min(empty, 1)
        empty = 0
        yield from [line] * _repeats(row, "number-rows-repeated")


def _open_cells(row: Element, words: Callable[[Element], str]) -> Iterator[str]:
    for cell in row:
        if cell.tag in ("table-cell", "covered-table-cell"):
            text = " ".join(words(line) for line in cell if line.tag in ("p", "h"))
            yield from [text] * _repeats(cell, "number-columns-repeated")


def _repeats(element: Element, attribute: str) -> int:
    """Return how often something stands there; the last cell of a row says thousands, all of them empty."""
    count = element.get(attribute) or "1"
    return min(int(count), _MOST_REPEATS) if count.isdigit() else 1


def _row(row: Element, strings: list[str], dates: frozenset[int]) -> str:
    cells: list[str] = []
    for cell in row.iter("c"):
        column = _column(cell.get("r") or "")
        if column > _MOST_COLUMNS:
            break
        cells += [""] * (column - len(cells))
        cells.append(_value(cell, strings, dates).replace("\t", " ").replace("\n", " "))
    return "\t".join(cells)


def _value(cell: Element, strings: list[str], dates: frozenset[int]) -> str:
    kind = cell.get("t") or "n"
    if kind == "inlineStr":
        return "".join(piece.text or "" for piece in cell.iter("t"))
    value = local(cell, "v")
    text = (value.text or "") if value is not None else ""
    if kind == "s":
        return strings[int(text)] if text.isdigit() and int(text) < len(strings) else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(text, text)
    style = cell.get("s") or ""
    return _date(text) if kind == "n" and style.isdigit() and int(style) in dates else text


def _date(text: str) -> str:
    """Return the date that a number of days stands for."""
    try:
        moment = _EPOCH + datetime.timedelta(seconds=round(float(text) * 86_400))
    except (ValueError, OverflowError):
        return text
    if float(text) < 1:
        return moment.time().isoformat()
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ")


def _column(reference: str) -> int:
    """Return the index of a column from a name such as AB12; 0 where there is none."""
    index = 0
    for char in reference[:4]:
        if not "A" <= char <= "Z":
            break
        index = index * 26 + ord(char) - ord("A") + 1
    return max(index - 1, 0)


def _shared_strings(archive: zipfile.ZipFile, names: set[str]) -> list[str]:
    if "xl/sharedStrings.xml" not in names:
        return []
    found: list[str] = []
    for item in read_xml(read_part(archive, "xl/sharedStrings.xml")).iter("si"):
        runs = (run for run in item if run.tag in ("t", "r"))  # not the phonetic reading
        found.append("".join(piece.text or "" for run in runs for piece in run.iter("t")))
    return found


def _date_styles(archive: zipfile.ZipFile, names: set[str]) -> frozenset[int]:
    """Return the numbers of the styles that show a number as a date."""
    if "xl/styles.xml" not in names:
        return frozenset()
    styles = read_xml(read_part(archive, "xl/styles.xml"))
    formats = {one.get("numFmtId"): one.get("formatCode") or "" for one in styles.iter("numFmt")}
    cells = local(styles, "cellXfs")
    found: set[int] = set()
    for index, style in enumerate(cells if cells is not None else ()):
        number = style.get("numFmtId") or "0"
        code = _NOT_FORMAT.sub("", formats.get(number, ""))
        if (number.isdigit() and int(number) in _DATE_FORMATS) or _DATE_LETTERS.search(code):
            found.add(index)
    return frozenset(found)


def _targets(archive: zipfile.ZipFile, names: set[str]) -> dict[str, str]:
    listed = "xl/_rels/workbook.xml.rels"
    if listed not in names:
        return {}
    targets = read_xml(read_part(archive, listed)).iter("Relationship")
    return {
        one.get("Id") or "": posixpath.normpath(posixpath.join("xl", one.get("Target") or "")).lstrip("/")
        for one in targets
    }
