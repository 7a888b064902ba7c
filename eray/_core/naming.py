"""Names, ports, tokens and directories that follow from a job's identity, the same on every node."""

import hashlib
import hmac
import re

from eray.errors import DirectoryError

NAMESPACE = "eray"
COORDINATOR_NAME = "eray-coordinator"
PORT_COUNT = 8
LOOPBACK = "127.0.0.1"
LOCAL = "local"  # instead of a job, for clusters of one machine alone
MAX_RAY_TEMP_BYTES = 36  # Ray's sockets below it must fit AF_UNIX's 107 bytes; measured with Ray 2.60


def cluster_key(job_id: str, step: str | None) -> str:
    """Return the key of the job's cluster (``123``), or of a step's own (``123.0``)."""
    return job_id if step is None else f"{job_id}.{step}"


def candidate_ports(cluster: str, key: str, restart: int, port_range: tuple[int, int]) -> tuple[int, ...]:
    """Return the eight distinct ports, in order, on which the head's beacon of this cluster may listen.

    Args:
        cluster: Slurm's name of the cluster of machines, empty if unknown.
        key: see :func:`cluster_key`.
        restart: how often the job was requeued; another life has other ports.
        port_range: lowest and highest port, both included, at least eight apart.
    """
    low, high = port_range
    ports: dict[int, None] = {}
    attempt = 0
    while len(ports) < PORT_COUNT:
        digest = hashlib.sha256(_identity("port", cluster, key, str(restart), str(attempt))).digest()
        ports[low + int.from_bytes(digest[:8], "big") % (high - low + 1)] = None
        attempt += 1
    return tuple(ports)


def cluster_token(secret: bytes, cluster: str, key: str, restart: int) -> str:
    """Return the token that proves membership of this cluster, as hex text."""
    return hmac.new(secret, _identity("token", cluster, key, str(restart)), hashlib.sha256).hexdigest()


def launch_secret(secret: bytes, cluster: str, job: str, restart: int) -> str:
    """Return the secret that ``eray run`` and ``eray up`` hand their step, as hex text for ERAY_SECRET.

    Who holds the user's secret can derive it again, on the login node too; who holds it learns nothing of the user's.
    """
    return hmac.new(secret, _identity("launch", cluster, job, str(restart)), hashlib.sha256).hexdigest()


def secret_fingerprint(secret: bytes) -> str:
    """Return eight hex digits that tell two secrets apart and help nobody to find one."""
    return hmac.new(secret, _identity("fingerprint"), hashlib.sha256).hexdigest()[:8]


def host_port(host: str, port: int | str) -> str:
    """Return ``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run_directory(tmpdir: str, uid: int, key: str, restart: int) -> str:
    """Return the node-local directory of this life of the cluster."""
    life = f"r{restart}" if restart else ""
    return f"{user_directory(tmpdir, uid)}/{_safe(key)}{life}"


def user_directory(tmpdir: str, uid: int) -> str:
    """Return the node-local directory of all clusters of one user."""
    return f"{tmpdir.rstrip('/')}/eray-{uid}"


def ray_temp_directory(run_dir: str) -> str:
    """Return Ray's temp directory: inside the run directory, or beside it under a short name where that is too long.

    Raises:
        DirectoryError: even the short name is longer than Ray can bear.
    """
    inside = f"{run_dir}/ray"
    if len(inside.encode()) <= MAX_RAY_TEMP_BYTES:
        return inside
    parent = run_dir.rpartition("/")[0]
    short = f"{parent}/{hashlib.sha256(run_dir.encode()).hexdigest()[:10]}"
    surplus = len(short.encode()) - MAX_RAY_TEMP_BYTES
    if surplus > 0:
        tmpdir = parent.rpartition("/")[0]
        size = len(tmpdir.encode())
        raise DirectoryError(
            f"ERAY_TMPDIR={tmpdir}",
            f"too long: it has {size} bytes, {size - surplus} are possible, for Ray's sockets are below it in {short}",
            "set ERAY_TMPDIR to a shorter directory on a local disk, such as /tmp",
        )
    return short


def job_directory(state_dir: str, cluster: str, job: str) -> str:
    """Return the directory, shared where home is, that serves people and the login node."""
    name = f"{cluster}-{job}" if cluster else job
    return f"{state_dir.rstrip('/')}/jobs/{_safe(name)}"


def job_file(kind: str, key: str) -> str:
    """Return a file in the job directory, of the job's own cluster or of one of its steps'.

    ``start`` tells that `eray run` or `eray up` was called, ``beacon`` how its head is reached, ``cluster`` how its
    Ray is, and ``picture`` how it ended.
    """
    step = key.partition(".")[2]
    return f"{kind}.{_safe(step)}.json" if step else f"{kind}.json"


def life_file(kind: str, key: str) -> str:
    """Return a file in ``jobs/local`` that tells of one cluster of a machine alone."""
    return f"{kind}.{_safe(key)}.json"


def is_local(key: str) -> bool:
    """Tell whether this is the key of a cluster of one machine alone."""
    return key.startswith(f"{LOCAL}-")


def job_of_directory(name: str) -> str | None:
    """Return the job of a run directory (``123.0r1``) or job directory (``cluster-123``), None where it is neither.

    A cluster of one machine alone has no job: its key (``local-1a2b3c4d``) stands for it.
    """
    match = re.fullmatch(r"(local-[0-9a-f]+)|([0-9]+)(?:\.[0-9]+)?(?:r[0-9]+)?|.*-([0-9]+)", name)
    return None if match is None else match[1] or match[2] or match[3]


def _identity(*parts: str) -> bytes:
    return "\0".join(("eray", *parts)).encode("utf-8", "surrogateescape")


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
