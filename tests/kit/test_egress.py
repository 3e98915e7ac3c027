"""What may be dialled: the attacks F1 to F3 of the security notes, and the one parser."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operant.kit.egress import Denied, Egress, Place, Reach, Unresolved, parse
from tests.kit.web import names

F1 = [
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.0.0.1./",
    "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/", "http://localhost/", "http://localhost./",
    "http://LOCALHOST/", "http://anything.localtest/", "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/", "http://\u2460\u2461\u2466.1/",
]  # fmt: skip

F2 = [
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://100.100.100.200/",
    "http://metadata.google.internal/", "http://METADATA.google.internal./", "http://metadata/",
    "http://2852039166/", "http://0xA9FEA9FE/", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/", "http://169.254.170.2/", "http://168.63.129.16/", "http://rebound.test/",
]  # fmt: skip

F3 = [
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "169.254.1.1",
    "fe80::1", "fc00::1", "fd12:3456::1", "224.0.0.1", "239.255.255.250", "ff02::1", "2002:7f00:1::",
    "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "198.18.0.1", "198.19.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1",
    "240.0.0.1", "255.255.255.255", "192.88.99.1", "192.0.0.1", "0.1.2.3", "100::1", "5f00::1", "4000::1",
    "::ffff:10.0.0.1", "fec0::1", "::127.0.0.1",
]  # fmt: skip

PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]

DNS = names(
    localhost=["127.0.0.1", "::1"],
    anything_localtest=["127.0.0.1"],
    rebound_test=["169.254.169.254"],
    mixed_test=["8.8.8.8", "10.0.0.1"],
    fine_test=["8.8.8.8", "2606:4700::1111", "8.8.8.8"],
    nas_local=["192.168.1.9"],
    printer_local=["192.168.1.7", "fe80::1%eth0"],
    odd_test=["not an address"],
    empty_test=[],
    fake_test=["198.18.0.9"],
)


def at(host: str) -> Place:
    return parse(f"http://[{host}]/" if ":" in host else f"http://{host}/")


@pytest.mark.parametrize("url", F1)
async def test_f1_this_machine_is_denied_however_it_is_spelt(url: str) -> None:
    with pytest.raises(Denied, match="this machine"):
        await Egress(resolve=DNS).resolve(parse(url))


@pytest.mark.parametrize("reach", list(Reach))
@pytest.mark.parametrize("url", F2)
async def test_f2_metadata_services_are_denied_whatever_is_allowed(url: str, reach: Reach) -> None:
    everything = Egress(("0.0.0.0/0", "::/0", "metadata.google.internal", "rebound.test"), DNS)
    with pytest.raises(Denied, match="metadata service"):
        await everything.resolve(parse(url), reach)


@pytest.mark.parametrize("address", F3)
async def test_f3_what_is_not_public_is_denied_and_the_sentence_names_the_setting(address: str) -> None:
    with pytest.raises(Denied, match=r"egress\.private"):
        await Egress().resolve(at(address))


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_addresses_are_dialled_as_they_are(address: str) -> None:
    (found,) = await Egress().resolve(at(address))
    assert ipaddress.ip_address(found) == ipaddress.ip_address(address)


async def test_a_name_is_as_good_as_its_worst_address() -> None:
    egress = Egress(resolve=DNS)
    assert await egress.resolve(at("fine.test")) == ("8.8.8.8", "2606:4700::1111")
    with pytest.raises(Denied, match=r"10\.0\.0\.1"):
        await egress.resolve(at("mixed.test"))
    with pytest.raises(Denied, match="cannot be judged"):
        await egress.resolve(at("odd.test"))


@pytest.mark.parametrize("host", ["empty.test", "unknown.test"])
async def test_a_name_without_an_address_is_not_found(host: str) -> None:
    with pytest.raises(Unresolved, match="was not found"):
        await Egress(resolve=DNS).resolve(at(host))


@pytest.mark.parametrize("entry", ["192.168.1.0/24", "192.168.1.9", "nas.local", "NAS.local."])
async def test_the_setting_opens_just_what_it_names(entry: str) -> None:
    egress = Egress((entry,), DNS)
    assert await egress.resolve(at("nas.local")) == ("192.168.1.9",)
    with pytest.raises(Denied):
        await egress.resolve(at("10.0.0.1"))
    with pytest.raises(Denied):
        await egress.resolve(at("127.0.0.1"))


async def test_a_fake_ip_proxy_has_its_own_sentence_and_its_setting() -> None:
    with pytest.raises(Denied, match=r"name 198\.18\.0\.0/15 in the setting egress\.private"):
        await Egress(resolve=DNS).resolve(at("fake.test"))
    assert await Egress(("198.18.0.0/15",), DNS).resolve(at("fake.test")) == ("198.18.0.9",)


async def test_what_the_owner_named_may_be_private() -> None:
    egress = Egress(resolve=DNS)
    assert await egress.resolve(at("127.0.0.1"), Reach.NAMED) == ("127.0.0.1",)
    assert await egress.resolve(at("nas.local"), Reach.NAMED) == ("192.168.1.9",)
    assert await egress.resolve(at("printer.local"), Reach.NAMED) == ("192.168.1.7",)
    with pytest.raises(Denied):
        await egress.resolve(at("printer.local"), Reach.PUBLIC)


@pytest.mark.parametrize("entry", ["", "no such host", "http://nas.local", "1.2.3.4.5", "10.0.0.0/99"])
def test_a_setting_that_says_nothing_is_refused(entry: str) -> None:
    with pytest.raises(Denied):
        Egress((entry,))


REFUSED = [
    "", "example.org", "//example.org", "http:/example.org", "http:example.org", "http://", "http:///path",
    "http://ok.test@evil.test/", "http://user:word@ok.test/", "http://ok.test\\@evil.test/", "http://evil.test\x00.ok.test/",
    "http://ok.test /", " http://ok.test/", "http://ok.test/a b", "http://ok.test/\r\nHost: evil", "http://ok\u3000.test/",
    "http://a..test/", "http://.test/", "http://%6fk.test/", "http://ok.test:0/", "http://ok.test:65536/",
    "http://ok.test:8x/", "http://ok.test:80:80/", "http://[::1/", "http://::1/", "http://[fe80::1%25eth0]/",
    "http://[1.2.3.4]/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://08.1/", "http://4294967296/",
    "http://a.1/", "http://" + "a" * 64 + ".test/", "http://-a.test/", "http://ok.test/\ud800", "http://ok,test/",
    "file:///etc/passwd", "gopher://ok.test/", "data:text/plain,x", "ftp://ok.test/", "javascript:alert(1)",
    "http://ok.test/" + "a" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
def test_what_can_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(Denied):
        parse(url)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://OK.Test", "http://ok.test/"),
        ("https://ok.test.:443/a?b=c#d", "https://ok.test/a?b=c#d"),
        ("http://ok.test:8080/%2e?x[]=ä", "http://ok.test:8080/%2e?x[]=%C3%A4"),
        ("http://bücher.test/ü", "http://xn--bcher-kva.test/%C3%BC"),
        ("http://ok.test:?q", "http://ok.test/?q"),
        ("http://[2606:4700:0::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("http://0x8.8.2056/", "http://8.8.8.8/"),
    ],
)
def test_an_address_has_one_spelling(url: str, normal: str) -> None:
    assert parse(url).url == normal


def test_a_name_that_looks_the_same_is_another_name() -> None:
    assert parse("http://\u043ek.test/").host == "xn--k-0tb.test"


HOSTILE = st.text(st.sampled_from("htps:/@[]%.\\#?&0127xf\x00 ae-_ä。①\u200d\ud800"), max_size=40)


@given(st.one_of(st.text(), HOSTILE.map(lambda rest: "http://" + rest)))
@example("http://" + "1" * 5000)
@example("http://xn--/")
def test_the_parser_reads_or_denies_and_what_it_read_it_reads_the_same_again(url: str) -> None:
    try:
        place = parse(url)
    except Denied as error:
        assert str(error)
        return
    assert parse(place.url) == place
    assert place.url.isascii()
    assert place.host == place.host.lower()


@given(st.ip_addresses())
async def test_every_address_is_public_or_denied_and_a_public_one_is_dialled_unchanged(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    try:
        (found,) = await Egress().resolve(at(str(address)))
    except Denied:
        return
    assert ipaddress.ip_address(found) == address
    assert not address.is_loopback
    assert not address.is_private or str(address).startswith(("64:ff9b::", "::ffff:"))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["{0}", "0x{0:x}", "0{0:o}", "{1}.{2}", "{1}.{3}.{4}"]))
def test_old_spellings_of_ipv4_are_what_a_c_library_dials(number: int, spelling: str) -> None:
    parts = (number, number >> 24, number & 0xFFFFFF, number >> 16 & 0xFF, number & 0xFFFF)
    assert parse(f"http://{spelling.format(*parts)}/").host == str(ipaddress.IPv4Address(number))
