"""The docs are true: tables are fresh, links lead somewhere, snippets run, settings are accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from operant.app.config import load_config
from operant.app.extensions import find_extensions
from scripts import docs

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_generated_tables_are_fresh() -> None:
    assert docs.main(["--check"]) == 0


def test_a_stale_table_is_noticed() -> None:
    text = "<!-- generated:errors -->\nold\n<!-- end -->\n"
    assert docs.fresh(text) != text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link.strip()).exists()]
    assert missing == []


def test_every_page_is_found_from_another() -> None:
    linked = {(page.parent / link.strip()).resolve() for page in PAGES for link in LINK.findall(page.read_text())}
    lost = [page for page in (ROOT / "docs").rglob("*.md") if page.resolve() not in linked]
    assert [str(page.relative_to(ROOT)) for page in lost] == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "recorded-task.md"],  # what it shows is what a tool said
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_python_runs_and_settings_are_accepted(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    for snippet in PYTHON.findall(text):
        exec(compile(snippet, str(page), "exec"), {})
    for snippet in YAML.findall(text):
        (tmp_path / "operant.yaml").write_text(snippet)
        load_config(tmp_path, {}, find_extensions().extensions)
