"""Log records as lines: ``key=value`` fields for people and grep, or one JSON object a line for programs.

A library configures nothing: the command line does (``log_command``), the coordinator's own process (``log_package``),
and, where ERAY_LOG or ERAY_LOG_FORMAT asks for it, a program that has configured no logging of its own.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eray._settings import Settings

LOG, LOG_FORMAT = "ERAY_LOG", "ERAY_LOG_FORMAT"
PACKAGE = "eray"
_FIELDS = "eray_fields"
_BARE = re.compile(r"[^\s\"=]+")


def is_debug(environ: Mapping[str, str]) -> bool:
    """Tell whether ERAY_LOG asks for all there is, tracebacks too; it may be wrong, which others say."""
    return environ.get(LOG, "").strip().lower() == "debug"


def log_change(logger: logging.Logger, event: str, /, **fields: Any) -> None:
    """Log one state change (``_core/state_changes``) with its ids; a field that is None is left out."""
    if logger.isEnabledFor(logging.INFO):
        known = {name: value for name, value in fields.items() if value is not None}
        logger.info(event.replace("-", " "), extra={_FIELDS: {"event": event, **known}})


class TextFormatter(logging.Formatter):
    """Gives ``17:03:21.042 INFO eray._ray.head: event=node-lost node=node02 … host=node01 pid=7``."""

    def __init__(self, host: str) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self._host = host

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Put the fields of a state change in the place of its words."""
        fields = _fields_of(record)
        if fields:
            record.message = " ".join(f"{name}={_value(value)}" for name, value in fields.items())
        return f"{super().formatMessage(record)} host={_value(self._host)} pid={record.process}"


class JsonFormatter(logging.Formatter):
    """Gives one JSON object a line: time (ISO 8601, UTC, ms), level, logger, host, node, pid, message, the fields."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON; ``node`` is this one where the record is about no other."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "host": self._host,
            "node": self._host,
            "pid": record.process,
            "message": record.getMessage(),
        }
        line |= _fields_of(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_command(settings: Settings, host: str) -> None:
    """Log to stderr in a process that is eray's own command; of other packages only warnings and errors."""
    own = level_of(settings)
    logging.basicConfig(handlers=[_to_stderr(settings, host)], level=max(own, logging.WARNING))
    logging.getLogger(PACKAGE).setLevel(own)


def log_package(settings: Settings, host: str) -> None:
    """Log eray's own records to stderr, unless the program has configured logging: then only its level is set."""
    logger = logging.getLogger(PACKAGE)
    if logger.level == logging.NOTSET:
        logger.setLevel(level_of(settings))
    if not logger.handlers:
        handler = _to_stderr(settings, host)
        handler.addFilter(lambda record: not logging.getLogger().handlers)  # the program may do so later
        logger.addHandler(handler)


def log_program(environ: Mapping[str, str], host: str) -> None:
    """Do as ``log_package`` in somebody else's program, where ERAY_LOG or ERAY_LOG_FORMAT is set."""
    if environ.get(LOG) or environ.get(LOG_FORMAT):
        log_package(log_settings(environ), host)


def log_settings(environ: Mapping[str, str]) -> Settings:
    """Read the two settings of logging alone: what is wrong with others is no business of the log's.

    Raises:
        SettingError: one of them has a value that it cannot have.
    """
    return Settings.from_environ({name: environ[name] for name in (LOG, LOG_FORMAT) if name in environ})


def host_of(environ: Mapping[str, str]) -> str:
    """Return what lines call this node: Slurm's name for it, else the host's."""
    return environ.get("SLURMD_NODENAME") or os.uname().nodename


def level_of(settings: Settings) -> int:
    """Return Python's number of the level."""
    return logging.getLevelNamesMapping()[settings.log.upper()]


def _to_stderr(settings: Settings, host: str) -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(host) if settings.log_format == "json" else TextFormatter(host))
    return handler


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, _FIELDS, {})
    return fields


def _value(value: object) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
