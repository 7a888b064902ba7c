"""The ERAY_* variables: one table with name, type, default, unit and meaning."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from eray.errors import SettingError

WARNINGS = frozenset({"USR1", "USR2", "TERM"})
SECRET_CHARACTERS = 32
PREFIX = "ERAY_"
ALIKE = 0.7
"""How like a variable of the table a name must be to count as misspelled; a site's own (ERAY_ROOT) are its business."""


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    variable: str
    kind: str  # "text", "path", "secret", "seconds", "count", "ports", "flag", "devices", "signals", "a|b" for a choice
    meaning: str


def _row(variable: str, kind: str, default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"setting": Setting(variable, kind, meaning)})


@dataclass(frozen=True)
class Settings:
    """What the user configured. Absent variables have the defaults here; a malformed value is an error."""

    head: str | None = _row("ERAY_HEAD", "text", None, "host name or address of the head node")
    interface: str | None = _row(
        "ERAY_INTERFACE", "text", None, "network interface name or CIDR, resolved on each node"
    )
    port_range: tuple[int, int] = _row("ERAY_PORT_RANGE", "ports", (24000, 29999), "where the beacon's ports are drawn")
    tmpdir: str = _row("ERAY_TMPDIR", "path", "/tmp", "node-local parent of the run directory")
    state_dir: str = _row("ERAY_STATE_DIR", "text", "~/.eray", "secret and job directories")
    secret: str | None = _row(
        "ERAY_SECRET", "secret", None, "shared secret instead of ~/.eray/secret, 32 characters or more"
    )
    auth: str = _row("ERAY_AUTH", "token|disabled", "token", "whether Ray and the beacon ask for a token")
    devices: str | None = _row("ERAY_DEVICES", "devices", None, "all, split, own, none, or ordinals such as 0,2")
    ray_gpus: int | None = _row("ERAY_RAY_GPUS", "count", None, "GPUs that Ray is told of, per node")
    dashboard: bool | None = _row(
        "ERAY_DASHBOARD", "flag", None, "whether Ray's dashboard runs; default: only with `eray up`"
    )
    cluster_timeout_s: float = _row("ERAY_CLUSTER_TIMEOUT_S", "seconds", 300.0, "for all nodes to be up")
    node_timeout_s: float = _row(
        "ERAY_NODE_TIMEOUT_S", "seconds", 5.0, "silence of a node, its kernel too, after which it is lost; at least 2"
    )
    join_timeout_s: float = _row("ERAY_JOIN_TIMEOUT_S", "seconds", 300.0, "for all processes to join and start JAX")
    drain_timeout_s: float = _row(
        "ERAY_DRAIN_TIMEOUT_S", "seconds", 300.0, "for all processes to leave, on the way out"
    )
    healthy_s: float = _row(
        "ERAY_HEALTHY_S", "seconds", 900.0, "that a restarted world must run for its restarts to be forgotten"
    )
    preemption_signals: tuple[str, ...] = _row(
        "ERAY_PREEMPTION_SIGNAL", "signals", ("USR1", "USR2"), "what warns of the job's end: USR1, USR2, TERM, or none"
    )
    log: str = _row("ERAY_LOG", "debug|info|warning|error", "warning", "verbosity on stderr")
    log_format: str = _row("ERAY_LOG_FORMAT", "text|json", "text", "form of the log's lines; `--log-json` sets json")
    attach: str = _row(
        "ERAY_ATTACH",
        "connect|demand",
        "connect",
        "whether connect() attaches the process to Ray, or only what needs it",
    )
    world: str | None = _row("ERAY_WORLD", "text", None, "name of the world to join")
    generation: int | None = _row("ERAY_GENERATION", "count", None, "set by `eray run`: the world's life")
    process_index: int | None = _row("ERAY_PROCESS_INDEX", "count", None, "this process's index in its world")
    process_count: int | None = _row("ERAY_PROCESS_COUNT", "count", None, "processes in the world")
    run_dir: str | None = _row("ERAY_RUN_DIR", "text", None, "set by `eray run`: the node's run directory")
    devices_per_process: int | None = _row(
        "ERAY_DEVICES_PER_PROCESS", "count", None, "devices of each process; default of `--devices-per-process`"
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Read the table's variables from ``environ``.

        Raises:
            SettingError: variables are set to values that they cannot have; it tells all of them.
        """
        values, bad = {}, []
        for name, setting in settings_table():
            text = environ.get(setting.variable, "").strip()
            if text:
                try:
                    values[name] = _parse(setting, text)
                except SettingError as error:
                    bad.append((error.variable, error.value, error.reason))
        if bad:
            raise SettingError(*bad[0], bad[1:])
        return cls(**values)


def settings_table() -> tuple[tuple[str, Setting], ...]:
    """Return the rows as (attribute name, setting), in order."""
    return tuple((item.name, item.metadata["setting"]) for item in fields(Settings))


def misspelled(environ: Iterable[str]) -> list[str]:
    """Return a line for each name that is none of the table's, but nearly one."""
    from difflib import get_close_matches

    known = [setting.variable.removeprefix(PREFIX) for _, setting in settings_table()]
    lines = []
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if name == word or word in known or word.startswith("TEST_"):
            continue
        longer = [each for each in known if word.startswith(f"{each}_")]
        swapped = [each for each in known if sorted(word) == sorted(each)]
        close = get_close_matches(word, known, n=1, cutoff=ALIKE) or swapped or longer
        if close:
            lines.append(f"{name} is set, and eray reads no such variable; did you mean {PREFIX}{close[0]}?")
    return lines


def _parse(setting: Setting, text: str) -> Any:
    kind = setting.kind
    if kind == "text":
        return text
    if kind == "secret":
        if len(text) < SECRET_CHARACTERS:
            reason = f"must have {SECRET_CHARACTERS} characters or more, as from `openssl rand -hex 32`"
            raise SettingError(setting.variable, f"({len(text)} characters)", reason)
        return text
    if kind == "path":
        if not text.startswith("/"):
            raise SettingError(setting.variable, text, "must be an absolute path")
        return text
    if kind == "devices":
        if not re.fullmatch(r"all|split|own|none|[0-9]{1,6}(,[0-9]{1,6})*", text.replace(" ", "")):
            raise SettingError(setting.variable, text, "must be all, split, own, none, or ordinals such as 0,2")
        return text
    if kind == "signals":
        return _signals(setting, text)
    if kind == "seconds":
        return _seconds(setting, text)
    if kind == "count":
        if not text.isascii() or not text.isdigit():
            raise SettingError(setting.variable, text, "must be a whole number, 0 or more")
        return int(text)
    if kind == "flag":
        if text.lower() not in _FLAGS:
            raise SettingError(setting.variable, text, "must be 1 or 0")
        return _FLAGS[text.lower()]
    if kind == "ports":
        return _ports(setting, text)
    if text.lower() not in kind.split("|"):
        raise SettingError(setting.variable, text, f"must be one of {', '.join(kind.split('|'))}")
    return text.lower()


_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _signals(setting: Setting, text: str) -> tuple[str, ...]:
    if text.lower() == "none":
        return ()
    names = tuple(part.strip().upper().removeprefix("SIG") for part in text.split(","))
    if not set(names) <= WARNINGS:
        raise SettingError(setting.variable, text, "must be none, or of USR1, USR2 and TERM, with commas")
    return tuple(dict.fromkeys(names))


def _seconds(setting: Setting, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SettingError(setting.variable, text, "must be a number of seconds") from None
    if not 0 < value < float("inf"):
        raise SettingError(setting.variable, text, "must be a number of seconds greater than 0")
    return value


def _ports(setting: Setting, text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    if not (dash and low.isdigit() and high.isdigit()):
        raise SettingError(setting.variable, text, "must be two ports, such as 24000-29999")
    if not 1024 <= int(low) < int(high) <= 65535 or int(high) - int(low) < 15:
        raise SettingError(setting.variable, text, "must span at least 16 ports between 1024 and 65535")
    return int(low), int(high)
