"""Prove that two nodes hold the same token, and seal what they say afterwards.

::

    client -> server   hello    JSON {"eray": 1, "nonce", "key", "fingerprint", "node"} and an empty line
    server -> client   answer   32 bytes of proof, JSON {"eray": 1, "nonce", "key", "fingerprint"}
    client -> server   proof    32 bytes
    either way         message  8 bytes of sequence number, 32 bytes of MAC, a JSON object

Every part travels as a frame: ``eray``, its length in 4 bytes, the part. Both proofs and the keys of the two
directions are HMAC-SHA256 under the token, each with a label of its own, over the whole of hello and answer: both
nonces are in it, so nothing of an earlier conversation fits, and a proof cannot be sent back as the other one.
The token never travels. Messages are authentic, not secret. The empty line makes a server of a line protocol (HTTP)
answer at once instead of waiting for more.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from eray.errors import ErayError

PROTOCOL = 1
MAGIC = b"eray"
HEADER_BYTES = len(MAGIC) + 4
PROOF_BYTES = 32
SEQUENCE_BYTES = 8
MAX_GREETING_BYTES = 4096
MAX_MESSAGE_BYTES = 1 << 20
MAX_FRAME_BYTES = MAX_MESSAGE_BYTES + SEQUENCE_BYTES + PROOF_BYTES


class Found(StrEnum):
    """What the other side of a connection, or a dialled port, turned out to be, as words."""

    UNRESOLVED = "the name does not resolve"
    NOTHING = "nothing listens"
    UNREACHABLE = "no answer to the connection (a firewall, or the node is down)"
    SILENT = "something listens but says nothing"
    STRANGER = "another program"
    OTHER_CLUSTER = "another cluster of eray"
    OTHER_PROTOCOL = "another version of eray"
    OTHER_SECRET = "this cluster, but with another secret"
    OTHER_TOKEN = "this cluster, but with another token (an earlier life of the job?)"


class HandshakeError(ErayError):
    """The other side is not a node of this cluster."""

    def __init__(self, found: Found, detail: str = "") -> None:
        super().__init__(found, detail)
        self.found, self.detail = found, detail

    def __str__(self) -> str:
        return f"{self.found} ({self.detail})" if self.detail else str(self.found)


class FrameError(ErayError, ValueError):
    """A frame is not what the peer can have sent, or is too large to be sent."""


@dataclass(frozen=True)
class Credentials:
    """What a node knows of its cluster: the token, the fingerprint of the secret behind it, and the cluster's key."""

    token: str = field(repr=False)
    fingerprint: str
    key: str


@dataclass(frozen=True)
class Session:
    """What both sides hold after hello and answer, if and only if they hold the same token."""

    client_proof: bytes
    client_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """The server's answer to a hello: ``session`` is None where it refuses, ``refused`` then says why."""

    payload: bytes
    node: str
    session: Session | None
    refused: Found | None


def frame(payload: bytes) -> bytes:
    """Put the magic and the length before ``payload``."""
    return MAGIC + len(payload).to_bytes(4, "big") + payload


def frame_length(header: bytes, limit: int) -> int:
    """Read a frame's header and return the length of what follows.

    Raises:
        HandshakeError: these are not the first bytes of a frame, or it is longer than ``limit``.
    """
    if header[: len(MAGIC)] != MAGIC:
        raise HandshakeError(Found.STRANGER, f"it says {header!r}")
    length = int.from_bytes(header[len(MAGIC) :], "big")
    if length > limit:
        raise HandshakeError(Found.STRANGER, f"a frame of {length} bytes, more than {limit}")
    return length


def hello(credentials: Credentials, node: str, nonce: bytes) -> bytes:
    """Return what the client says first."""
    return _greeting(credentials, nonce=nonce.hex(), node=node) + b"\r\n\r\n"


def answer(credentials: Credentials, said: bytes, nonce: bytes) -> Answer:
    """Return the server's answer to the hello ``said``.

    Raises:
        HandshakeError: ``said`` is not a hello.
    """
    fields = _read_greeting(said)
    refused = _difference(credentials, fields)
    node = str(fields.get("node", ""))
    greeting = _greeting(credentials, nonce=nonce.hex())
    if refused is not None:
        return Answer(bytes(PROOF_BYTES) + greeting, node, None, refused)
    server_proof, session = _derive(credentials.token, said, greeting)
    return Answer(server_proof + greeting, node, session, None)


def accept(credentials: Credentials, said: bytes, answered: bytes) -> Session:
    """Check the server's answer to our hello ``said``; the session holds the proof that the client owes.

    Raises:
        HandshakeError: the answer is not that of our cluster's beacon; ``found`` says what it is instead.
    """
    proof, greeting = answered[:PROOF_BYTES], answered[PROOF_BYTES:]
    fields = _read_greeting(greeting)
    difference = _difference(credentials, fields)
    if difference is not None:
        detail = {Found.OTHER_CLUSTER: ascii(fields["key"][:60]), Found.OTHER_PROTOCOL: f"protocol {fields['eray']}"}
        raise HandshakeError(difference, detail.get(difference, ""))
    expected, session = _derive(credentials.token, said, greeting)
    if not hmac.compare_digest(proof, expected):
        raise HandshakeError(Found.OTHER_TOKEN)
    return session


def check_proof(session: Session, proof: bytes) -> None:
    """Check the client's proof.

    Raises:
        HandshakeError: the client does not hold the token.
    """
    if not hmac.compare_digest(proof, session.client_proof):
        raise HandshakeError(Found.OTHER_TOKEN)


class Sealer:
    """Seal the messages of one direction: each gets the next number and a MAC over number and text."""

    def __init__(self, key: bytes) -> None:
        self._key, self._sequence = key, 0

    def seal(self, message: Mapping[str, Any]) -> bytes:
        """Return the sealed message.

        Raises:
            FrameError: the message is larger than a frame may be.
        """
        text = json.dumps(message, separators=(",", ":")).encode()
        if len(text) > MAX_MESSAGE_BYTES:
            raise FrameError(f"a message of {len(text)} bytes; {MAX_MESSAGE_BYTES} is the most that can be sent")
        number = self._sequence.to_bytes(SEQUENCE_BYTES, "big")
        self._sequence += 1
        return number + hmac.digest(self._key, number + text, "sha256") + text


class Opener:
    """Open the sealed messages of one direction, in order and each once."""

    def __init__(self, key: bytes) -> None:
        self._key, self._sequence = key, 0

    def open(self, sealed: bytes) -> dict[str, Any]:
        """Return the message.

        Raises:
            FrameError: it was not sealed with this key, was changed, is not the next one, or is no JSON object.
        """
        number, rest = sealed[:SEQUENCE_BYTES], sealed[SEQUENCE_BYTES:]
        mac, text = rest[:PROOF_BYTES], rest[PROOF_BYTES:]
        if not hmac.compare_digest(mac, hmac.digest(self._key, number + text, "sha256")):
            raise FrameError("a message was changed on its way (its MAC is wrong)")
        if int.from_bytes(number, "big") != self._sequence:
            found = int.from_bytes(number, "big")
            raise FrameError(f"message {found} came where {self._sequence} was due (replayed or lost)")
        self._sequence += 1
        return _read_object(text)


def _greeting(credentials: Credentials, **more: Any) -> bytes:
    fields = {"eray": PROTOCOL, "key": credentials.key, "fingerprint": credentials.fingerprint, **more}
    return json.dumps(fields, separators=(",", ":")).encode()


def _read_greeting(text: bytes) -> dict[str, Any]:
    try:
        fields = _read_object(text)
    except FrameError:
        raise HandshakeError(Found.STRANGER, f"it says {text[:40]!r}") from None
    if not isinstance(fields.get("eray"), int) or not isinstance(fields.get("key"), str):
        raise HandshakeError(Found.STRANGER, f"it says {text[:40]!r}")
    return fields


def _read_object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("a message is no JSON") from None
    if not isinstance(value, dict):
        raise FrameError("a message is no JSON object")
    return value


def _difference(credentials: Credentials, fields: Mapping[str, Any]) -> Found | None:
    if fields["key"] != credentials.key:
        return Found.OTHER_CLUSTER
    if fields["eray"] != PROTOCOL:
        return Found.OTHER_PROTOCOL
    if fields.get("fingerprint") != credentials.fingerprint:
        return Found.OTHER_SECRET
    return None


def _derive(token: str, said: bytes, greeting: bytes) -> tuple[bytes, Session]:
    transcript = len(said).to_bytes(4, "big") + said + greeting
    labels = (b"server proof", b"client proof", b"client key", b"server key")
    server_proof, *rest = (
        hmac.digest(token.encode(), b"eray " + label + b":" + transcript, "sha256") for label in labels
    )
    return server_proof, Session(*rest)
