"""What a check of `eray doctor` found, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum

from eray.errors import AddressError, DirectoryError, ErayError, SecretError, SettingError


class Status(StrEnum):
    """How bad it is: an error keeps eray from working, a warning may; a note only tells."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """The outcome of the check ``name`` on one node; ``remedy`` is None where nothing is to be done."""

    name: str
    status: Status
    found: str
    remedy: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Return the finding as JSON types."""
        return {"name": self.name, "status": str(self.status), "found": self.found, "remedy": self.remedy}


@dataclass(frozen=True)
class Fault:
    """What a look-up ended with instead of a fact."""

    found: str
    remedy: str

    @classmethod
    def of(cls, error: ErayError) -> "Fault":
        """Take a fault from an error's own words."""
        if isinstance(error, DirectoryError | SecretError):
            return cls(f"{error.path} {error.reason}", error.remedy)
        if isinstance(error, AddressError):
            return cls(error.found, error.remedy)
        if isinstance(error, SettingError):
            return cls(str(error), f"correct or unset {error.variable}")
        return cls(str(error), f"see {type(error).__name__} in docs/errors.md")


def ok(name: str, found: str) -> Finding:
    """Return that all is well."""
    return Finding(name, Status.OK, found)


def note(name: str, found: str, remedy: str | None = None) -> Finding:
    """Return something worth knowing."""
    return Finding(name, Status.NOTE, found, remedy)


def warning(name: str, found: str, remedy: str) -> Finding:
    """Return what may go wrong."""
    return Finding(name, Status.WARNING, found, remedy)


def error(name: str, found: str, remedy: str) -> Finding:
    """Return what will go wrong."""
    return Finding(name, Status.ERROR, found, remedy)


def fault(name: str, found: Fault) -> Finding:
    """Return the error that a look-up ended with."""
    return Finding(name, Status.ERROR, found.found, found.remedy)
