"""Judge what surrounds the program on a node: Slurm's words, libraries, devices, the secret, proxies."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eray._core.finding import Fault, Finding, error, fault, note, ok, warning
from eray._core.place import Place

FLOORS = {"ray": "2.54", "jax": "0.8.1", "filelock": "3.16", "pydantic": "2.12", "rich": "13.7", "shtab": "1.9"}
"""The oldest versions that the tests have run with, as in pyproject.toml."""
SHOWN = ("ray", "jax", "jaxlib", "eray")
PLUGINS = {
    "cuda": ("jax-cuda13-plugin", "jax-cuda12-plugin"),
    "rocm": ("jax-rocm7-plugin", "jax-rocm60-plugin"),
}
"""The packages that let JAX use accelerators of this kind (jaxlib/plugin_support.py)."""

REMEDIES = {
    "slurm-format": "unset the variable if you set it; if Slurm wrote it, report it with its value",
    "slurm-missing": "pass all SLURM_* variables on: `env -i`, sudo and containers drop them",
    "slurm-contradiction": "start the program with srun itself, and export no SLURM_* of another step",
    "foreign-launcher": "start the program with srun or `eray run`, not with mpirun",
    "setting": "correct it, see docs/environment.md",
}


@dataclass(frozen=True)
class Slurm:
    """What `eray plan` makes of the environment: ``problems`` as (code, words); the path of srun, None without.

    ``runs_steps`` tells that `eray run` would start a step from here.
    """

    job: str | None
    problems: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    srun: str | None
    runs_steps: bool


@dataclass(frozen=True)
class Accelerators:
    """What this process may open: ``count`` devices of ``kind`` (None: cannot be told), its visible list."""

    kind: str | None
    count: int | None
    visible: tuple[str, ...] | None


@dataclass(frozen=True)
class Secret:
    """The secret of the user's clusters: where it is, and what tells two secrets apart.

    ``found`` is the fingerprint, None where the secret is made at its first use. ``shared`` tells whether its
    directory is on a network file system, None where it does not count.
    """

    auth: str
    where: str
    found: str | Fault | None
    shared: bool | None


@dataclass(frozen=True)
class Software:
    """What was found. ``versions`` by package, None where it is missing; ``ray_address`` is RAY_ADDRESS."""

    slurm: Slurm
    python: str
    executable: str
    versions: Mapping[str, str | None]
    accelerators: Accelerators
    state_directory: str | Fault
    secret: Secret
    proxies: Mapping[str, str]
    ray_address: str | None


def check_software(place: Place, software: Software) -> tuple[Finding, ...]:
    """Judge it all; each problem of Slurm's words is a finding of its own."""
    return (
        *_slurm(place, software.slurm),
        _srun(software.slurm),
        _versions(software),
        _accelerators(software),
        _state_directory(software.state_directory),
        _secret(place, software.secret),
        _proxies(software.proxies),
        _ray_address(place, software.ray_address),
    )


def _slurm(place: Place, slurm: Slurm) -> list[Finding]:
    name = "environment"
    if slurm.problems:
        return [
            error(name, f"{code}: {words}", REMEDIES.get(code, "see docs/errors.md")) for code, words in slurm.problems
        ]
    where = place.environment if slurm.job is None else f"{place.environment} of job {slurm.job}"
    if place.nodes:
        where += f", {len(place.nodes)} node{'s' * (len(place.nodes) > 1)}, head {place.head}"
    if slurm.notices:
        return [note(name, f"{where}; {notice}") for notice in slurm.notices]
    if place.nodes and not place.inside:
        return [note(name, f"{where}; this host is none of them", "`srun eray doctor` looks at the nodes themselves")]
    if slurm.runs_steps and len(place.nodes) > 1:
        return [note(name, f"{where}; this is one of them", "`srun eray doctor` looks at all")]
    return [ok(name, "no job" if place.environment == "none" else where)]


def _srun(slurm: Slurm) -> Finding:
    name = "srun"
    if not slurm.runs_steps:
        return ok(name, "not needed here" if slurm.srun is None else slurm.srun)
    if slurm.srun is None:
        remedy = "load Slurm's module, or bind its programs into the container; or start `srun eray run …` from outside"
        return error(name, "not on PATH, and `eray run` starts its step with it", remedy)
    return ok(name, slurm.srun)


def _versions(software: Software) -> Finding:
    name, versions = "versions", software.versions
    shown = ", ".join(f"{package} {versions.get(package) or 'missing'}" for package in SHOWN)
    found = f"Python {software.python}, {shown}; {software.executable}"
    missing = [package for package in (*FLOORS, "jaxlib") if versions.get(package) is None]
    if missing:
        return error(
            name, f"{found}; missing: {', '.join(missing)}", "install eray with its dependencies in this environment"
        )
    old = [package for package, floor in FLOORS.items() if _numbers(versions[package] or "") < _numbers(floor)]
    if old:
        floors = ", ".join(f"{package}>={FLOORS[package]}" for package in old)
        return warning(name, f"{found}; older than tested", f"pip install '{floors}'")
    return ok(name, found)


def _accelerators(software: Software) -> Finding:
    name, seen = "accelerators", software.accelerators
    if seen.kind is None or seen.count == 0:
        return ok(name, "none that this process may open")
    visible = "all visible" if seen.visible is None else f"visible: {','.join(seen.visible) or 'none'}"
    found = f"{'some' if seen.count is None else seen.count} of {seen.kind}, {visible}"
    plugins = {each: software.versions.get(each) for each in PLUGINS.get(seen.kind, ())}
    there = {each: version for each, version in plugins.items() if version is not None}
    if seen.visible == ():
        return ok(name, found)
    if plugins and not there:
        remedy = f"install JAX for {seen.kind}, such as 'eray[cuda]', or set JAX_PLATFORMS=cpu"
        return warning(name, f"{found}; JAX has no plugin for them and would use the CPU", remedy)
    jaxlib = software.versions.get("jaxlib")
    unfit = [f"{each} {version}" for each, version in there.items() if _numbers(version) != _numbers(jaxlib or "")]
    if seen.kind == "cuda" and len(unfit) == len(there) and unfit:
        remedy = f"install both in one version: pip install 'jax[cuda12]=={jaxlib}'"
        return warning(name, f"{found}; JAX ignores {', '.join(unfit)} beside jaxlib {jaxlib}", remedy)
    return ok(name, "; ".join([found, *(f"{each} {version}" for each, version in there.items())]))


def _state_directory(path: str | Fault) -> Finding:
    return fault("state-directory", path) if isinstance(path, Fault) else ok("state-directory", path)


def _secret(place: Place, secret: Secret) -> Finding:
    name = "secret"
    if secret.auth == "disabled":
        found = "ERAY_AUTH=disabled: whoever reaches a port of the cluster can run code as you"
        return warning(name, found, "unset ERAY_AUTH, and share the secret between the nodes: the home, or ERAY_SECRET")
    if isinstance(secret.found, Fault):
        return fault(name, secret.found)
    found = (
        f"{secret.where}, made at its first use"
        if secret.found is None
        else f"{secret.where}, fingerprint {secret.found}"
    )
    if place.several and secret.shared is False:
        return warning(
            name,
            f"{found}; not on a network file system, so other nodes may have another",
            "where their fingerprints differ: export ERAY_SECRET=$(openssl rand -hex 32) in the batch script; "
            "`eray run` needs none",
        )
    return ok(name, found)


def _proxies(proxies: Mapping[str, str]) -> Finding:
    if not proxies:
        return ok("proxies", "none set")
    found = ", ".join(f"{name}={re.sub(r'//[^/@]*@', '//…@', value)}" for name, value in proxies.items())
    remedy = "eray keeps them out of its own way; for Ray's commands put the nodes into no_proxy and no_grpc_proxy"
    return note("proxies", found, remedy)


def _ray_address(place: Place, address: str | None) -> Finding:
    name = "ray-address"
    if not address:
        return ok(name, "RAY_ADDRESS is not set")
    found = f"RAY_ADDRESS={address}: `connect()` joins that Ray"
    remedy = "unset RAY_ADDRESS unless you mean that Ray"
    return warning(name, f"{found}, not the job's", remedy) if place.nodes else note(name, found, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
