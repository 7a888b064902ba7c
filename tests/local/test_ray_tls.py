"""Ray's own TLS in a cluster of eray's: it shuts a stranger out before he can say anything (docs/security.md)."""

import shutil
import subprocess
from pathlib import Path

import pytest
from doors import GUARDED_GRPC, ask, call, listeners
from laptop import Laptop, await_text

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = [
    pytest.mark.ray,
    pytest.mark.jax,
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with"),
]


def certificates(directory: Path) -> dict[str, str]:
    """Make an authority and one certificate of its; return Ray's variables that name them."""

    def openssl(words: str, *more: str) -> None:
        subprocess.run(["openssl", *words.split(), *more], cwd=directory, check=True, capture_output=True)

    openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca")
    openssl("req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node")
    addresses = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True).stdout.split()
    names = ["DNS:localhost", *(f"IP:{address}" for address in ("127.0.0.1", *addresses))]
    (directory / "names").write_text(f"subjectAltName={','.join(names)}\n")
    openssl("x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out node.crt")
    files = {"SERVER_CERT": "node.crt", "SERVER_KEY": "node.key", "CA_CERT": "ca.crt"}
    return {"RAY_USE_TLS": "1", **{f"RAY_TLS_{name}": str(directory / file) for name, file in files.items()}}


def test_with_rays_tls_a_world_runs_and_nobody_without_a_certificate_is_heard(laptop: Laptop, tmp_path: Path) -> None:
    end = laptop.root / "work" / "end"
    command = ["--", "python", PROGRAMS / "stay.py", end, "--jax"]
    running = laptop.eray("run", "-n", "2", *command, **certificates(tmp_path))
    await_text(running, "process 1 is in")
    daemons = [pid for pid, line in laptop.processes().items() if "raylet/raylet" in line or "gcs/gcs_server" in line]
    doors = [door for door in listeners(daemons) if ask(door, "GET", "/")[0] == 0]
    assert len(doors) == 3  # GCS, and the raylet's two
    for door in doors:
        assert {call(door, method, None) for method in GUARDED_GRPC} == {"UNAVAILABLE"}
    end.touch()
    running.wait().check()
    end.unlink()
