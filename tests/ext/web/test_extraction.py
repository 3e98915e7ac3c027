"""How good the readable text is: 32 pages of different kinds, ours beside another extractor."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from operant.kit.readable.page import read_page
from tests.ext.web.saved import PAGES, Saved

FLOOR = 0.98


def ours(html: str) -> str:
    page = read_page(html, "https://example.org/page")
    return " ".join(f"{page.title}\n{page.text}".split())


def theirs(html: str) -> str:
    trafilatura = pytest.importorskip("trafilatura", reason="pip install 'operant[web]'")
    return " ".join((trafilatura.extract(html, output_format="markdown", include_tables=True) or "").split())


def recall(saved: Saved, text: str) -> float:
    return fmean(phrase in text for phrase in saved.must)


def precision(saved: Saved, text: str) -> float:
    return fmean(phrase not in text for phrase in saved.must_not)


def f1(saved: Saved, extract: Callable[[str], str]) -> float:
    text = extract(saved.html)
    found, clean = recall(saved, text), precision(saved, text)
    return 2 * found * clean / (found + clean) if found + clean else 0.0


@pytest.mark.parametrize("saved", PAGES, ids=lambda one: one.kind)
def test_everything_that_matters_is_there_and_nothing_else(saved: Saved) -> None:
    text = ours(saved.html)
    missing = [phrase for phrase in saved.must if phrase not in text]
    clutter = [phrase for phrase in saved.must_not if phrase in text]
    assert (missing, clutter) == ([], [])


def test_c14_hidden_words_never_reach_the_model() -> None:
    (hidden,) = [one for one in PAGES if one.kind == "hidden_text"]
    assert precision(hidden, ours(hidden.html)) == 1.0


def test_a_page_that_is_only_links_keeps_them() -> None:
    names = ("alpha.txt", "beta.txt", "gamma.txt", "delta.txt", "epsilon-with-a-long-name.txt")
    links = "".join(f"<li><a href='{name}'>{name}</a></li>" for name in names * 4)
    text = ours(f"<html><head><title>Index</title></head><body><h1>Index</h1><hr><ul>{links}</ul><hr></body></html>")
    assert all(name in text for name in names)


def test_ours_is_at_least_as_good_as_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(saved.kind, f1(saved, ours), f1(saved, theirs)) for saved in PAGES]
    mine, other = fmean(row[1] for row in rows), fmean(row[2] for row in rows)
    with capsys.disabled():
        pass
    assert mine >= FLOOR
    assert mine >= other
