"""Read the fields of a JSON object that another node sent, each with its type."""

from collections.abc import Mapping
from typing import Any

from eray.errors import BeaconError

_MISSING = object()


class Message:
    """A JSON object from the node ``sender``; every reader raises BeaconError with the field's name and value."""

    def __init__(self, raw: Mapping[str, Any], what: str, sender: str) -> None:
        self._raw, self._what, self._sender = raw, what, sender

    def error(self, name: str, rule: str) -> BeaconError:
        """Return the error that says what is wrong with a field."""
        value = self._raw.get(name, _MISSING)
        found = "is missing" if value is _MISSING else f"is {_short(value)}"
        remedy = f"it {rule}; install the same version of eray on all nodes"
        return BeaconError(self._sender, f"field {name!r} of its {self._what} {found}", remedy)

    def text(self, name: str) -> str:
        """Return a string that is not empty."""
        value = self._raw.get(name)
        if not isinstance(value, str) or not value:
            raise self.error(name, "must be a text")
        return value

    def count(self, name: str, least: int) -> int:
        """Return a whole number, ``least`` or more."""
        value = self._raw.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(name, f"must be a whole number, {least} or more")
        return value

    def optional_count(self, name: str, least: int) -> int | None:
        """Return a whole number, or None where the field is null."""
        return None if name in self._raw and self._raw[name] is None else self.count(name, least)

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of strings as a tuple, or None where the field is null."""
        value = self._raw.get(name, _MISSING)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self.error(name, "must be a list of texts or null")
        return tuple(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
