"""The newest part of an endless output."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from operant.kit.spool import Spool


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(-200, 400), st.integers(0, 100))
def test_it_reads_as_the_whole_would_as_far_as_it_is_kept(pieces: list[bytes], offset: int, most: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder) / "out", keep=50)
        for piece in pieces:
            spool.write(piece)
        whole = b"".join(pieces)
        assert spool.end == len(whole)
        assert spool.end - spool.start >= min(len(whole), 50)
        assert spool.end - spool.start <= 100 + 40
        begin, data = spool.read(offset, most)
        assert spool.start <= begin <= spool.end
        assert data == whole[begin : begin + most]
        spool.close()
        assert list(Path(folder).iterdir()) == []
