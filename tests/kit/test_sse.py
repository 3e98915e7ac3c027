"""Server-sent events, however the bytes arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from operant.kit.sse import ServerEvent, SseDecoder

words = st.text(alphabet=st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=8)


@given(st.lists(words.filter(bool), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_any_cut_gives_the_same_events(texts: list[str], newline: str, data: st.DataObject) -> None:
    stream = "".join(f"data: {text}{newline}{newline}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    decoder, events = SseDecoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        events += decoder.feed(stream[start:end])
    events += decoder.feed(newline.encode())
    assert [event.data for event in events] == texts


def test_comments_types_and_lines() -> None:
    stream = b": hello\nevent: ping\ndata: a\ndata:b\n\nid: 3\n\ndata:  c\n\n"
    assert list(SseDecoder().feed(stream)) == [ServerEvent("a\nb", "ping"), ServerEvent(" c")]
