"""The command line of a sandbox, as a function of its policy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.kit.likeness import CHOSEN, likeness
from operant.kit.pinned import pinned
from operant.kit.sandbox import HOME, PROXY_SOCKET, Bubblewrap, Kept, Policy, find_bubblewrap, is_below, wrapped

NEW = Bubblewrap("/usr/bin/bwrap")
OLD = Bubblewrap("/usr/bin/bwrap", sizes=False, closes=False, pins=False, counts=False)


def pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    """Return the two words after each occurrence of an option."""
    return [(words[place + 1], words[place + 2]) for place, word in enumerate(words) if word == option]


def test_everything_is_unshared_and_dies_with_us() -> None:
    words = wrapped(NEW, Policy(), ["true"])
    assert words[0] == "/usr/bin/bwrap"
    for option in ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--disable-userns"):
        assert option in words
    assert "--share-net" not in words
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words[-1] == "true"


def test_an_older_bubblewrap_is_told_only_what_it_knows() -> None:
    assert "14" in wrapped(NEW, Policy(processes=7), ["true"])
    words = wrapped(OLD, Policy(processes=7), ["true"], kept=[Kept(5, "/w/.env")])
    assert not {"--disable-userns", "--size", "--ro-bind-fd", "--bind-fd"} & set(words)
    assert "14" not in words  # there the limit would count every process of the user


def test_what_is_writable_lies_over_what_is_hidden_and_what_holds_it_below() -> None:
    policy = Policy(readable=("/srv/h/venv", "/srv"), writable=("/srv/h/work",), hidden=("/srv/h", "/other"))
    words = wrapped(NEW, policy, ["true"])
    order = [words.index(path, words.index("--proc")) for path in ("/srv", "/srv/h", "/srv/h/venv", "/srv/h/work")]
    assert order == sorted(order)
    assert "/other" not in words
    assert pairs(words, "--bind") == [("/srv/h/work", "/srv/h/work")]
    assert ("/srv", "/srv") in pairs(words, "--ro-bind-try")
    assert words[words.index("/srv/h") - 1] == "--tmpfs"


def test_a_terminal_keeps_its_session_and_nobody_else_does() -> None:
    assert "--new-session" not in wrapped(NEW, Policy(terminal=True), ["true"])


def test_home_scratch_and_socket_have_places_inside() -> None:
    words = wrapped(NEW, Policy(home="/s/home", scratch="/s/tmp", socket="/s/p.sock", etc="/s/etc"), ["true"])
    assert pairs(words, "--bind") == [("/s/tmp", "/tmp"), ("/s/home", HOME), ("/s/p.sock", PROXY_SOCKET)]
    assert ("/s/etc", "/etc") in pairs(words, "--ro-bind")
    assert "/tmp" in words[words.index("--tmpfs") :] or "/tmp" in words
    inert = wrapped(NEW, Policy(), ["true"])
    assert [inert[place + 1] for place, word in enumerate(inert) if word == "--tmpfs"] == ["/dev/shm", "/tmp", HOME]


def test_the_root_is_closed_after_the_last_place_is_made() -> None:
    words = wrapped(
        NEW, Policy(writable=("/w",)), ["true"], kept=[Kept(7, "/w/.git", writable=True), Kept(8, "/w/.env")]
    )
    assert words.index("--remount-ro") > words.index("/w")
    assert pairs(words, "--bind-fd") == [("7", "/w/.git")]
    assert pairs(words, "--ro-bind-fd") == [("8", "/w/.env")]
    assert words.index("--bind-fd") > words.index("/w")


def test_bubblewrap_is_read_from_its_help_and_found_in_fixed_places_only(tmp_path: Path) -> None:
    made = Bubblewrap.read("/b", "--size BYTES\n --disable-userns\n", "5.10.0-21-amd64")
    assert (made.sizes, made.closes, made.pins, made.counts) == (True, True, False, False)
    assert Bubblewrap.read("/b", "", "6.1.0").counts
    (tmp_path / "bwrap").touch(mode=0o755)
    assert find_bubblewrap((str(tmp_path / "none"),)) == ""
    assert find_bubblewrap((str(tmp_path / "none"), str(tmp_path / "bwrap"))) == str(tmp_path / "bwrap")


@pytest.mark.parametrize(("path", "top", "below"), [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False)])
def test_below_is_by_whole_names(path: str, top: str, below: bool) -> None:
    assert is_below(path, top) is below


class TestLikeness:
    """The `/etc` inside."""

    @pytest.fixture
    def etc(self, tmp_path: Path) -> Path:
        source = tmp_path / "etc"
        (source / "ssl" / "certs").mkdir(parents=True)
        (source / "ssl" / "private").mkdir()
        (source / "ssl" / "private" / "key.pem").write_text("CANARY")
        (source / "ssl" / "certs" / "ca.pem").write_text("a certificate")
        (source / "ssl" / "certs" / "linked.pem").symlink_to("ca.pem")
        (source / "shells").write_text("/bin/sh\n")
        (source / "profile").write_text("CANARY")
        (source / "profile").chmod(0o600)
        for name in ("shadow", "passwd", "sudoers", "machine-id"):
            (source / name).write_text("CANARY")
        return source

    def test_it_has_what_is_chosen_and_everybody_may_read_and_names_of_its_own(self, etc: Path, tmp_path: Path) -> None:
        made = likeness(tmp_path, etc)
        found = {str(path.relative_to(made)) for path in made.rglob("*") if not path.is_dir()}
        own = {"passwd", "group", "hosts", "nsswitch.conf", "resolv.conf"}
        assert found == {"ssl/certs/ca.pem", "ssl/certs/linked.pem", "shells", *own}
        assert "CANARY" not in "".join((made / name).read_text() for name in found)
        assert (made / "ssl" / "certs" / "linked.pem").is_symlink()

    def test_it_is_kept_until_what_it_shows_has_changed(self, etc: Path, tmp_path: Path) -> None:
        first = likeness(tmp_path, etc)
        assert likeness(tmp_path, etc) == first
        (etc / "ssl" / "certs" / "new.pem").write_text("another")
        second = likeness(tmp_path, etc)
        assert second != first
        assert [path.name for path in tmp_path.glob("etc-*")] == [second.name]
        assert (second / "ssl" / "certs" / "new.pem").exists()

    def test_no_name_of_a_secret_is_chosen(self) -> None:
        assert not any(word in name for name in CHOSEN for word in ("shadow", "ssh", "private", "sudo", "machine"))


class TestPinned:
    """What programs obey in a workspace."""

    def test_what_is_there_is_held_and_what_holds_it_too(self, tmp_path: Path) -> None:
        (tmp_path / ".git" / "hooks").mkdir(parents=True)
        (tmp_path / ".env").touch()
        with pinned(str(tmp_path)) as kept:
            names = [(Path(one.path).relative_to(tmp_path).as_posix(), one.writable) for one in kept]
            assert all(os.fstat(one.handle).st_ino == Path(one.path).stat().st_ino for one in kept)
        assert names == [(".git", True), (".git/hooks", False), (".env", False)]
        for one in kept:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(one.handle)

    def test_links_and_odd_things_are_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere" / "hooks").mkdir(parents=True)
        (tmp_path / ".git").symlink_to("elsewhere")
        (tmp_path / ".env").symlink_to("/etc/passwd")
        os.mkfifo(tmp_path / ".npmrc")
        with pinned(str(tmp_path)) as kept:
            assert kept == ()
        with pinned(str(tmp_path / "none")) as kept:
            assert kept == ()
