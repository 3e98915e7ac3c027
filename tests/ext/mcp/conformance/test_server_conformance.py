"""The official conformance suite against `/mcp` of a real system; the baseline says what cannot pass, and why."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from tests.ext.mcp.conformance.forward import forwarding
from tests.ext.mcp.conformance.suite import HERE, bring
from tests.ext.mcp.house import furnished

MANIFEST = "---\nname: tea\ndescription: Make tea.\n---\nBoil water; see notes/cups.md.\n"
SKILLS = ("enumeration", "manifest", "directory")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("conformance")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_suite_finds_what_it_should(tmp_path: Path, pytestconfig: pytest.Config, revision: str) -> None:
    suite = bring(Path(str(pytestconfig.cache.mkdir("conformance"))), revision)  # type: ignore[union-attr]
    home = tmp_path / "home"
    (home / "extensions").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    shutil.copy(HERE / "probe.py", home / "extensions" / "probe.py")
    notes = home / "skills" / "a-cup-of-tea" / "notes"
    notes.mkdir(parents=True)
    (notes / "cups.md").write_text("Two.\n")
    (notes.parent / "SKILL.md").write_text(MANIFEST.replace("name: tea", "name: a-cup-of-tea"))
    with socket.create_server(("127.0.0.1", 0)) as door:
        place = f"127.0.0.1:{door.getsockname()[1]}"
        names = {"names": [place, place.replace("127.0.0.1", "localhost")]}
        serve = {"tools": ["test_*"]}
        async with (
            furnished(tmp_path, {}, gateway=names, serve=serve) as house,
            forwarding(door, house.system.url, house.system.token),
        ):
            url = f"http://{place}/mcp"
            baseline = str(HERE / f"server-{revision}.yaml")
            words = ["server", "--url", url, "--expected-failures", baseline]
            words += ["--requirements", revision] if revision == "2026-07-28" else []
            code, said = await suite.run(words, tmp_path)
            assert code == 0, said
            for part in SKILLS if revision == "2026-07-28" else ():
                code, said = await suite.run(
                    ["server", "--url", url, "--scenario", f"sep-2640-skills-{part}"], tmp_path
                )
                assert code == 0, said
