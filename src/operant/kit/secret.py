"""A text that must not be seen: it prints as `***` wherever it ends up by accident."""

from __future__ import annotations


class Secret:
    """Hold a secret; `name` is the variable it came from, and a secret whose variable is not set is empty."""

    __slots__ = ("_value", "name")

    def __init__(self, value: str = "", name: str = "") -> None:
        self._value = value
        self.name = name

    def reveal(self) -> str:
        """Return the text itself; only where it leaves for the one it is meant for."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> str:
        raise TypeError("A secret is not written down.")
