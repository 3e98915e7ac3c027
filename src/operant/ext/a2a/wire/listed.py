"""Pages of a list of tasks."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
from a2a.types.a2a_pb2 import ListTasksRequest
from a2a.utils.errors import InvalidParamsError

from operant.ext.a2a.letter import Letter
from operant.ext.a2a.standing import Standing
from operant.sdk import Record

USUAL = 50
MOST = 100


class Page(Record):
    """Which tasks are wanted: those after a place in the order, of a context, changed since a time."""

    size: int = USUAL
    after: tuple[int, str] | None = None
    context: str = ""
    since: int = 0

    @classmethod
    def read(cls, params: ListTasksRequest) -> Page:
        """Read a request. Raises `InvalidParamsError`."""
        size = params.page_size if params.HasField("page_size") else USUAL
        if not 1 <= size <= MOST:
            raise InvalidParamsError(f"pageSize must be from 1 to {MOST}.")
        since = params.status_timestamp_after
        return cls(
            size=size,
            after=_place(params.page_token) if params.page_token else None,
            context=params.context_id,
            since=since.ToMicroseconds() if params.HasField("status_timestamp_after") else 0,
        )

    def wants(self, letter: Letter) -> bool:
        """Tell whether a task is in the context that is wanted."""
        return not self.context or letter.context == self.context


def page_of(standings: Sequence[Standing], page: Page) -> tuple[list[Standing], str, int]:
    """Return the tasks of a page, the token of the next one (empty: there is none), and how many there are in all."""
    found = sorted((one for one in standings if one.at >= page.since), key=_key, reverse=True)
    rest = [one for one in found if page.after is None or _key(one) < page.after]
    shown = rest[: page.size]
    more = len(rest) > page.size
    return shown, _token(shown[-1]) if more else "", len(found)


def _key(one: Standing) -> tuple[int, str]:
    return one.at, one.letter.id


def _token(one: Standing) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_key(one))).decode()


def _place(token: str) -> tuple[int, str]:
    try:
        return msgspec.json.decode(base64.b64decode(token.encode(), b"-_", validate=True), type=tuple[int, str])
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidParamsError("This pageToken is not one of ours.") from error
