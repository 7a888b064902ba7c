"""Who gets which device of a node, and by which rule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eray._core.division import OPTION
from eray.errors import DevicePlanError, SettingError

BIND = "give each process its own by `srun --gpus-per-task=N`, or all of them to each by `--gres=gpu:N`"
COUNT = "`eray run --processes-per-node`, `srun --ntasks-per-node`"
OVERRIDE = "set ERAY_DEVICES to all, split, own, none, or ordinals such as 0,2"


@dataclass(frozen=True)
class ProcessView:
    """What one process of a node sees.

    ``visible`` are its tokens as given, None where unset; ``uuids`` the identities that the driver gave for them;
    ``assigned`` the part of them that Ray gave it, where Ray did not narrow the list itself; ``override`` its own
    ERAY_DEVICES, which beats the node's.
    """

    local_index: int
    visible: tuple[str, ...] | None
    uuids: tuple[str, ...] | None = None
    assigned: tuple[str, ...] | None = None
    override: str | None = None


@dataclass(frozen=True)
class NodeView:
    """All that is known of a node; ``processes`` are those that reported, ``local_count`` is how many there are."""

    node: str
    local_count: int
    in_step: bool
    gpus_on_node: int | None
    hardware_count: int | None
    override: str | None
    processes: tuple[ProcessView, ...]


@dataclass(frozen=True)
class Share:
    """What one process gets: ordinals in its visible list, None for no accelerator, and the rule that decided."""

    local_index: int
    local_device_ids: tuple[int, ...] | None
    rule: str | None


def plan_node(view: NodeView) -> tuple[Share, ...]:
    """Decide the devices of every process that reported. The first rule that fits decides.

    Raises:
        DevicePlanError: the devices cannot be divided safely; it names the node, what is seen, and the remedy.
        SettingError: ERAY_DEVICES has a value that it cannot have.
    """
    overrides = [process.override or view.override for process in view.processes]
    if any(overrides):
        return tuple(_overridden(view, process, text) for process, text in zip(view.processes, overrides, strict=True))
    seen = [own_tokens(process, view) for process in view.processes]
    unknown = [p.local_index for p, tokens in zip(view.processes, seen, strict=True) if tokens is None]
    if unknown:
        raise _unknown(view, unknown)
    known = [tokens for tokens in seen if tokens is not None]
    blind = [p.local_index for p, tokens in zip(view.processes, known, strict=True) if not tokens]
    if len(blind) == len(known):
        return tuple(Share(p.local_index, None, "none") for p in view.processes)
    if blind:
        raise DevicePlanError(
            "too-many-processes", view.node, f"{_named(blind)} may see no device, others of the node do", BIND
        )
    if view.local_count == 1:
        return _all_ordinals(view, "all")
    return _divide(view, known)


def own_tokens(process: ProcessView, view: NodeView) -> tuple[str, ...] | None:
    """Return the tokens of the devices that this process may use, None where nothing proves which are ours.

    In a Slurm step an unset list is proven only by a hardware count that equals what Slurm allotted; outside Slurm it
    means the hardware that is there.
    """
    tokens = process.visible if process.assigned is None else process.assigned
    if tokens is not None:
        return tokens
    hardware = view.hardware_count or 0
    if view.in_step and not view.gpus_on_node:
        return ()
    if view.in_step and hardware != view.gpus_on_node:
        return None
    return tuple(str(ordinal) for ordinal in range(hardware))


def device_count(view: NodeView) -> int:
    """Return how many devices of this node its first process may use: what Ray can be told of."""
    return len(own_tokens(view.processes[0], view) or ())


def _divide(view: NodeView, tokens: Sequence[tuple[str, ...]]) -> tuple[Share, ...]:
    proven = all(process.uuids for process in view.processes)
    identities = [process.uuids or () for process in view.processes] if proven else list(tokens)
    kinds = {_kind(token) for seen in identities for token in seen}
    if len(kinds) > 1 and not proven:
        found = f"some processes name devices by {' and some by '.join(sorted(kinds))}, which cannot be compared"
        raise DevicePlanError("devices-unknown", view.node, found, OVERRIDE)
    everything = [identity for seen in identities for identity in seen]
    if len(identities) > 1 and len(set(everything)) == len(everything):
        return _all_ordinals(view, "own")
    if len(set(identities)) > 1:
        sight = "; ".join(f"{p.local_index}: {','.join(seen)}" for p, seen in zip(view.processes, tokens, strict=True))
        raise DevicePlanError(
            "devices-overlap", view.node, f"the processes see different lists that overlap ({sight})", BIND
        )
    return _share(view, len(tokens[0]), proven=proven)


def _share(view: NodeView, visible: int, *, proven: bool) -> tuple[Share, ...]:
    allotted, processes = view.gpus_on_node or visible, view.local_count
    found = f"each of {processes} processes sees the same {visible} devices, and Slurm allotted {allotted} on this node"
    if visible > allotted:
        raise DevicePlanError("devices-unknown", view.node, found, f"unset what widened the list, or {OVERRIDE}")
    if proven or visible == allotted:
        return tuple(_part(view, process, visible, "split") for process in view.processes)
    if visible * processes <= allotted:
        return _all_ordinals(view, "own-bound")
    raise DevicePlanError("devices-overlap", view.node, found, BIND)


def _part(view: NodeView, process: ProcessView, visible: int, rule: str) -> Share:
    size, rest = divmod(visible, view.local_count)
    found = f"{view.local_count} processes and {visible} visible devices"
    if size == 0:
        raise DevicePlanError(
            "too-many-processes", view.node, found, f"start at most {visible} processes a node ({COUNT}), or {BIND}"
        )
    if rest:
        raise DevicePlanError(
            "devices-indivisible",
            view.node,
            found,
            f"start a number that divides {visible} ({COUNT}), `eray run {OPTION} {size}`, or {BIND}",
        )
    ordinals = _ordinals(process, view)
    if len(ordinals) < visible:
        found = f"{found}, all MIG slices, of which CUDA shows a process only the first"
        raise DevicePlanError(
            "devices-indivisible", view.node, found, "bind one slice to each: `srun --gpus-per-task=1`"
        )
    start = process.local_index * size
    return Share(process.local_index, ordinals[start : start + size], rule)


def _all_ordinals(view: NodeView, rule: str) -> tuple[Share, ...]:
    return tuple(Share(p.local_index, _ordinals(p, view), rule) for p in view.processes)


def _ordinals(process: ProcessView, view: NodeView) -> tuple[int, ...]:
    tokens = own_tokens(process, view) or ()
    slices = [position for position, token in enumerate(tokens) if token.startswith("MIG-")]
    if slices:  # CUDA enumerates one MIG slice a process, the first of its list (NVIDIA's MIG user guide)
        tokens = tokens[: max(1, slices[0])]
    if process.assigned is None or len(process.assigned) == len(process.visible or ()):
        return tuple(range(len(tokens)))
    visible = process.visible
    if visible is None and all(token.isdigit() for token in tokens):
        return tuple(int(token) for token in tokens)
    if visible is None or not set(tokens) <= set(visible):
        found = f"Ray gave process {process.local_index} {','.join(tokens)}, which its visible list has not"
        raise DevicePlanError("devices-unknown", view.node, found, OVERRIDE)
    return tuple(visible.index(token) for token in tokens)


def _overridden(view: NodeView, process: ProcessView, text: str | None) -> Share:
    if text is None:
        found = f"process {process.local_index} has no ERAY_DEVICES, others of the node have"
        raise DevicePlanError("devices-unknown", view.node, found, "set it for all processes of a node, or for none")
    if text == "none":
        return Share(process.local_index, None, "none")
    if process.visible is None and view.hardware_count is not None:
        process = replace(process, visible=tuple(str(ordinal) for ordinal in range(view.hardware_count)))
    visible = process.visible
    if text not in ("all", "own", "split"):
        return Share(process.local_index, _chosen(view, process, text), "ordinals")
    if visible is None:
        found = f"ERAY_DEVICES={text}, but the visible list is unset and nothing counted the hardware"
        raise DevicePlanError("devices-unknown", view.node, found, "name the devices: ERAY_DEVICES=0,1,...")
    if not visible:
        return Share(process.local_index, None, "none")
    if text == "split":
        return _part(view, process, len(visible), "split")
    return Share(process.local_index, _ordinals(process, view), text)


def _chosen(view: NodeView, process: ProcessView, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,6}(?:,[0-9]{1,6})*", text.replace(" ", "")):
        raise SettingError("ERAY_DEVICES", text, "must be all, split, own, none, or ordinals such as 0,2")
    ordinals = tuple(int(part) for part in text.split(","))
    if len(set(ordinals)) < len(ordinals):
        raise SettingError("ERAY_DEVICES", text, "names a device twice")
    if process.visible is not None and max(ordinals) >= len(process.visible):
        reason = f"process {process.local_index} of node {view.node} sees only {len(process.visible)} devices"
        raise SettingError("ERAY_DEVICES", text, f"{reason}; ordinals count from 0 within the visible list")
    return ordinals


def _unknown(view: NodeView, unknown: Sequence[int]) -> DevicePlanError:
    counted = "nothing counted the hardware" if view.hardware_count is None else f"{view.hardware_count} are there"
    found = (
        f"Slurm allotted {view.gpus_on_node} devices of this node, {_named(unknown)} of {view.local_count} have no "
        f"visible list (--gpu-bind=none), and {counted}"
    )
    return DevicePlanError("devices-unknown", view.node, found, f"{BIND}, or {OVERRIDE}")


def _kind(token: str) -> str:
    return "index" if token[0].isdigit() else token.partition("-")[0]


def _named(indexes: Sequence[int]) -> str:
    return f"process{'es' if len(indexes) > 1 else ''} {', '.join(str(index) for index in indexes)} (by local index)"
