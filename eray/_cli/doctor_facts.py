"""Find out what `eray doctor` judges. Nothing is made, started or changed; what hangs is left behind."""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from eray._bringup import memory_bytes, shared_secret
from eray._core import checkup_software, naming
from eray._core.checkup import Facts
from eray._core.checkup_network import Network, Ports, names_to_ask
from eray._core.checkup_node import Clock, Node, OtherRay
from eray._core.checkup_software import Accelerators, Secret, Slurm, Software
from eray._core.disk import Disk
from eray._core.finding import Fault
from eray._core.nodespec import NODE_FILE
from eray._core.place import Place, place_of
from eray._core.version import __version__
from eray._io import clock, files, limits, net, ports, process, programs, software
from eray._io.devices import read_hardware
from eray._io.interfaces import local_addresses
from eray._io.patience import answers
from eray._io.secret import SECRET_NAME, read_secret
from eray._io.skew import skew_s
from eray._settings import Settings
from eray._slurm.environment import SHELLS, SlurmEnvironment, read_environment
from eray._slurm.plan import make_plan
from eray.errors import ConfigurationError, DirectoryError, ErayError, SecretError, SettingError

PATIENCE_S, DIAL_S = 3.0, 0.8
LOCAL_KEY = "local-00000000"  # as long as that of any cluster of one machine


@dataclass(frozen=True)
class Home:
    """What only a home that answers can tell."""

    state_directory: str | Fault
    secret: str | Fault | None
    shared: bool | None
    skew_s: float | None


@dataclass(frozen=True)
class Around:
    """What surrounds this process; malformed Slurm variables leave ``slurm`` None, malformed settings the defaults."""

    environ: Mapping[str, str]
    settings: Settings
    slurm: SlurmEnvironment | None
    place: Place
    run_dir: str


def gather(environ: Mapping[str, str]) -> Facts:
    """Find out everything; a second where all is well, four where a resolver, the home or the head does not answer."""
    around = _around(environ)
    asked = {*names_to_ask(around.place), socket.gethostname()}
    calls: dict[str, Callable[[], Any]] = {"": lambda: _home(around.settings)}  # no name is empty
    calls |= {name: _resolve(name) for name in sorted(asked)}
    answered = answers(calls, PATIENCE_S)
    home: Home = answered.get("") or _silent_home(around.settings)
    resolved = {name: answered.get(name) for name in asked}
    return Facts(around.place, _network(around, resolved), _node(around, home), _software(around, home))


def _around(environ: Mapping[str, str]) -> Around:
    try:
        settings = Settings.from_environ(environ)
    except SettingError:  # the plan names it
        settings = Settings()
    try:
        slurm = read_environment(environ)
    except ConfigurationError:  # likewise
        slurm = None
    place = place_of(
        "unknown" if slurm is None else str(slurm.mode),
        () if slurm is None else slurm.nodes,
        name=None if slurm is None else slurm.node_name,
        hostname=socket.gethostname(),
        head=settings.head,
    )
    job = None if slurm is None else slurm.job
    key, restart = (naming.cluster_key(job.id, None), job.restart) if job else (LOCAL_KEY, 0)
    run_dir = naming.run_directory(settings.tmpdir, os.getuid(), key, restart)
    return Around(environ, settings, slurm, place, run_dir)


def _resolve(name: str) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(net.resolve(name))


def _network(around: Around, resolved: Mapping[str, tuple[str, ...] | None]) -> Network:
    settings, place = around.settings, around.place
    try:
        address: str | Fault = net.node_address(
            place.name, settings.interface, place.several, look_up=lambda name: resolved.get(name) or ()
        )
    except ErayError as exc:
        address = Fault.of(exc)
    return Network(
        hostname=socket.gethostname(),
        resolved=resolved,
        interface=settings.interface,
        interfaces=tuple((each.interface, each.address) for each in local_addresses()),
        address=address,
        ports=_ports(around, resolved),
    )


def _ports(around: Around, resolved: Mapping[str, tuple[str, ...] | None]) -> Ports | None:
    place, slurm = around.place, around.slurm
    if slurm is None or (slurm.job is not None and not place.inside):
        return None
    if slurm.job is None:  # which ports each cluster has depends on its name, which does not exist yet
        low, high = around.settings.port_range
        every = tuple(range(low, high + 1))
        return Ports(every, busy=tuple(takewhile(lambda port: ports.busy_ports([port], naming.LOOPBACK), every)))
    job = slurm.job
    key = naming.cluster_key(job.id, None)
    candidates = naming.candidate_ports(job.cluster, key, job.restart, around.settings.port_range)
    about = files.read_json(os.path.join(around.run_dir, NODE_FILE)) or {}
    pid = about.get("pid")
    if isinstance(pid, int) and process.is_alive(pid, about.get("started")):
        return Ports(candidates, cluster_pid=pid)
    if place.is_head:
        return Ports(candidates, busy=ports.busy_ports(candidates))
    head = resolved.get(place.head or "") or ()
    return Ports(candidates, silent=ports.silent_ports(head, candidates, DIAL_S) if head else ())


def _node(around: Around, home: Home) -> Node:
    tmpdir, slurm = around.settings.tmpdir, around.slurm
    return Node(
        temporary=_temporary(tmpdir),
        run_directory=_run_directory(tmpdir, around.run_dir),
        shared_free_bytes=_free_bytes(files.SHARED_MEMORY),
        memory_bytes=memory_bytes(None if slurm is None else slurm.memory_mb_on_node),
        limits=limits.read_limits(),
        clock=Clock(datetime.fromtimestamp(clock.unix(), UTC).isoformat(" ", "milliseconds"), home.skew_s),
        kernel=platform.release(),
        pidfd=limits.has_pidfd(),
        other_rays=_other_rays(naming.user_directory(tmpdir, os.getuid())),
    )


def _temporary(tmpdir: str) -> Disk | Fault:
    try:
        files.check_filesystem(tmpdir)
        return files.disk(tmpdir)
    except DirectoryError as exc:
        return Fault.of(exc)
    except OSError as exc:
        return Fault(
            f"{tmpdir} cannot be looked at ({exc.strerror})", "set ERAY_TMPDIR to a local directory that exists"
        )


def _run_directory(tmpdir: str, run_dir: str) -> str | Fault:
    try:
        naming.ray_temp_directory(run_dir)
        files.check_possible(run_dir, tmpdir)
    except DirectoryError as exc:
        return Fault.of(exc)
    return os.path.dirname(run_dir) if os.path.basename(run_dir) == LOCAL_KEY else run_dir


def _free_bytes(path: str) -> int | None:
    try:
        return files.disk(path).free_bytes
    except OSError:
        return None


def _other_rays(own: str) -> tuple[OtherRay, ...]:
    found = programs.running({"raylet", "gcs_server"})
    others = (each for each in found if not any(f"{own}/" in word for word in each.argv))
    return tuple(
        OtherRay(each.pid, "you" if each.uid == os.getuid() else f"uid {each.uid}", each.name) for each in others
    )


def _software(around: Around, home: Home) -> Software:
    settings, slurm = around.settings, around.slurm
    hardware = read_hardware()
    plan = make_plan([around.environ], hardware_count=hardware.count)
    packages = {*checkup_software.FLOORS, *checkup_software.SHOWN, *sum(checkup_software.PLUGINS.values(), ())}
    versions = {package: software.installed(package) for package in packages}
    where = "ERAY_SECRET" if settings.secret else os.path.join(settings.state_dir, SECRET_NAME)
    return Software(
        slurm=Slurm(
            job=None if plan.job is None else plan.job.id,
            problems=tuple((problem.code, problem.message) for problem in plan.problems),
            notices=plan.notices,
            srun=shutil.which("srun", path=around.environ.get("PATH")),
            runs_steps=slurm is not None and slurm.mode in SHELLS,
        ),
        python=platform.python_version(),
        executable=sys.executable,
        versions={**versions, "eray": __version__},
        accelerators=Accelerators(hardware.kind, hardware.count, None if slurm is None else slurm.visible),
        state_directory=home.state_directory,
        secret=Secret(settings.auth, where, home.secret, home.shared),
        proxies=net.proxy_variables(around.environ),
        ray_address=around.environ.get("RAY_ADDRESS"),
    )


def _home(settings: Settings) -> Home:
    state_dir = os.path.abspath(os.path.expanduser(settings.state_dir))
    parent = os.path.dirname(state_dir)
    kind = files.filesystem_type(parent)
    state: str | Fault = f"{state_dir} on {kind or 'an unknown file system'}"
    try:
        files.check_possible(state_dir, parent)
    except DirectoryError as exc:
        state = Fault.of(exc)
    shared = files.is_network(kind)
    skew = skew_s(parent) if shared else None
    return Home(state, _secret(settings, state_dir), None if settings.secret else shared, skew)


def _secret(settings: Settings, state_dir: str) -> str | Fault | None:
    try:
        given = settings.secret is not None or settings.auth == "disabled"
        secret = shared_secret(settings) if given else read_secret(os.path.join(state_dir, SECRET_NAME))
    except SecretError as exc:
        return Fault.of(exc)
    return None if secret is None else naming.secret_fingerprint(secret)


def _silent_home(settings: Settings) -> Home:
    found = f"{settings.state_dir} does not answer for {PATIENCE_S:g} s"
    silent = Fault(found, "see whether its file server is up, or set ERAY_STATE_DIR to another place")
    return Home(silent, _secret(settings, "") if settings.secret else silent, None, None)
