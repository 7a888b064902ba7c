"""What a cluster's processes listen on, and what a stranger gets there."""

import http.client
import os
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

NOBODY = 65534
LISTENING = "0A"
WRONG = {"Authorization": "Bearer " + "0" * 64}

GUARDED_HTTP = (
    ("GET", "/api/version"),
    ("GET", "/api/jobs/"),
    ("POST", "/api/jobs/"),
    ("GET", "/nodes?view=summary"),
    ("GET", "/api/cluster_status"),
    ("GET", "/api/v0/logs"),
    ("GET", "/api/prometheus/sd"),
    ("POST", "/api/job_agent/jobs/"),
    ("POST", "/get_or_create_runtime_env"),
)
GUARDED_GRPC = (
    "ray.rpc.CoreWorkerService/PushTask",
    "ray.rpc.CoreWorkerService/Exit",
    "ray.rpc.NodeManagerService/GetSystemConfig",
    "ray.rpc.NodeManagerService/ShutdownRaylet",
    "ray.rpc.ObjectManagerService/Pull",
    "ray.rpc.ObjectManagerService/Push",
    "ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "ray.rpc.InternalKVGcsService/InternalKVKeys",
    "ray.rpc.JobInfoGcsService/AddJob",
    "ray.rpc.ReporterService/GetTraceback",
    "ray.rpc.LogService/ListLogs",
)


@contextmanager
def other_user() -> Iterator[None]:
    """Make this process another user's without rights, as far as files and processes go; only root can."""
    groups, gid, uid = os.getgroups(), os.getegid(), os.geteuid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)


def is_refused_to_other_user(path: Path) -> bool:
    """Tell whether another user can neither read a file, list a directory nor connect to a socket."""
    try:
        kind = path.lstat().st_mode
        with other_user():
            if stat.S_ISSOCK(kind):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(path))
            elif stat.S_ISDIR(kind):
                os.listdir(path)
            else:
                path.read_bytes()
    except (PermissionError, FileNotFoundError, ProcessLookupError):  # what is gone meanwhile tells nobody anything
        return True
    return False


def holders(text: str, pids: Iterable[int]) -> set[int]:
    """Return which of these processes have the text in their environment or their arguments."""
    found = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # an idle worker of Ray's ended meanwhile
            if any(text.encode() in Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline")):
                found.add(pid)
    return found


def sockets_of(pids: Iterable[int]) -> set[str]:
    """Return the inodes of all sockets that these processes hold."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    return inodes


def listeners(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Return address and TCP port of all on which these processes listen."""
    inodes, found = sockets_of(pids), set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                address, port = fields[1].split(":")
                here = ".".join(str(part) for part in reversed(bytes.fromhex(address[-8:])))  # also of ::ffff:a.b.c.d
                found.add(("127.0.0.1" if here == "0.0.0.0" else here, int(port, 16)))
    return found


def ask(door: tuple[str, int], method: str, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return status and body of one HTTP request; the status is 0 where no HTTP is spoken."""
    connection = http.client.HTTPConnection(*door, timeout=10)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (http.client.HTTPException, ConnectionError):
        return 0, ""
    finally:
        connection.close()


def call(door: tuple[str, int], method: str, token: str | None) -> str:
    """Return the gRPC status of an empty call."""
    import grpc

    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    with grpc.insecure_channel("{}:{}".format(*door), options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(f"/{method}")(b"", timeout=10, metadata=metadata)
        except grpc.RpcError as exc:
            return str(exc.code().name)
    return "OK"
