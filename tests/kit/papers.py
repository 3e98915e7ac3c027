"""Small documents of each kind, made by hand, for the tests that read them."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib

_W = 'xmlns:w="urn:w"'
_REL = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def zip_of(parts: dict[str, str | bytes]) -> bytes:
    """Make a zip file of parts by name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def tar_of(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    """Make a tar file of members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def docx() -> bytes:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Plan</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>"
        "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>item</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>"
        "<w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    return zip_of({"word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>"})


def xlsx() -> bytes:
    return zip_of(
        {
            "xl/workbook.xml": f'<workbook {_R}><sheets><sheet name="Costs" sheetId="1" r:id="rId7"/>'
            "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships {_REL}><Relationship Id="rId7" Target="worksheets/s.xml"/>'
            "</Relationships>",
            "xl/sharedStrings.xml": "<sst><si><t>rent</t></si><si><r><t>li</t></r><r><t>ght</t></r></si></sst>",
            "xl/styles.xml": '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
            "xl/worksheets/s.xml": "<worksheet><sheetData>"
            '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1"><v>800.5</v></c></row>'
            '<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>45000</v></c><c r="C2" t="b"><v>1</v></c></row>'
            "</sheetData></worksheet>",
        }
    )


def pptx() -> bytes:
    def slide(text: str) -> str:
        return f'<p:sld xmlns:p="urn:p" xmlns:a="urn:a"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>'

    return zip_of(
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="urn:p" {_R}><p:sldIdLst><p:sldId id="256" r:id="r2"/>'
            '<p:sldId id="257" r:id="r1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": f'<Relationships {_REL}><Relationship Id="r1" Target="slides/a.xml"/>'
            '<Relationship Id="r2" Target="/ppt/slides/b.xml"/></Relationships>',
            "ppt/slides/a.xml": slide("last"),
            "ppt/slides/b.xml": slide("first"),
            "ppt/slides/_rels/b.xml.rels": f'<Relationships {_REL}><Relationship Id="n" '
            'Target="../notesSlides/n.xml"/></Relationships>',
            "ppt/notesSlides/n.xml": slide("say hello"),
        }
    )


_ODF = 'xmlns:office="urn:o" xmlns:text="urn:t" xmlns:table="urn:b" xmlns:draw="urn:d"'


def odt() -> bytes:
    body = (
        '<text:h text:outline-level="2">Head</text:h><text:p>a<text:s text:c="2"/>b<text:tab/>c</text:p>'
        "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
    )
    return _opendocument(f"<office:text>{body}</office:text>")


def ods() -> bytes:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    twice = cell.format(' table:number-columns-repeated="2"', "y")
    rows = (
        f"<table:table-row>{cell.format('', 'x')}{twice}"
        '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1000000"><table:table-cell/></table:table-row>'
    )
    return _opendocument(f'<office:spreadsheet><table:table table:name="T">{rows}</table:table></office:spreadsheet>')


def odp() -> bytes:
    return _opendocument(
        '<office:presentation><draw:page draw:name="p1"><draw:frame><text:p>words</text:p></draw:frame></draw:page>'
        "</office:presentation>"
    )


def _opendocument(body: str) -> bytes:
    content = f"<office:document-content {_ODF}><office:body>{body}</office:body></office:document-content>"
    return zip_of({"mimetype": "application/vnd.oasis.opendocument", "content.xml": content})


def epub() -> bytes:
    return zip_of(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></container>',
            "OPS/p.opf": '<package xmlns:dc="urn:dc"><metadata><dc:title>Book</dc:title></metadata><manifest>'
            '<item id="a" href="text/one.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
            "OPS/text/one.xhtml": "<!DOCTYPE html><html><head><title>x</title><style>p{}</style></head>"
            "<body><h1>One</h1><p>It&nbsp;was\nso.</p><script>bad()</script></body></html>",
        }
    )


def pdf(*pages: str) -> bytes:
    """Make a PDF file with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, content in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1"))
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.writelines(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def png(width: int, height: int) -> bytes:
    """Make a PNG picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    row = b"\0" + b"\x40\x80\xc0" * width
    pressed = zlib.compressobj()
    data = b"".join([*(pressed.compress(row) for _ in range(height)), pressed.flush()])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
