"""The proof of the token and the sealing of messages, without a socket."""

import json

import pytest

from eray._core import handshake
from eray._core.handshake import Credentials, Found, FrameError, HandshakeError, Opener, Sealer

OURS = Credentials("t" * 64, "0123abcd", "17.0")
NONCE, OTHER_NONCE = b"c" * 32, b"s" * 32


def talk(client: Credentials, server: Credentials):
    said = handshake.hello(client, "n2", NONCE)
    answer = handshake.answer(server, said, OTHER_NONCE)
    return said, answer


def test_handshake_same_token_both_sides_agree():
    said, answer = talk(OURS, OURS)
    session = handshake.accept(OURS, said, answer.payload)
    assert answer.node == "n2"
    assert session == answer.session
    handshake.check_proof(answer.session, session.client_proof)
    assert len({session.client_proof, session.client_key, session.server_key, answer.payload[:32]}) == 4


@pytest.mark.parametrize(
    ("server", "found"),
    [
        (Credentials("u" * 64, "0123abcd", "17.0"), Found.OTHER_TOKEN),
        (Credentials("t" * 64, "ffffffff", "17.0"), Found.OTHER_SECRET),
        (Credentials("t" * 64, "0123abcd", "18.0"), Found.OTHER_CLUSTER),
        (Credentials("t" * 64, "ffffffff", "18.0"), Found.OTHER_CLUSTER),
    ],
)
def test_handshake_other_server_is_told_apart(server, found):
    said, answer = talk(OURS, server)
    with pytest.raises(HandshakeError) as caught:
        handshake.accept(OURS, said, answer.payload)
    assert caught.value.found is found


def test_handshake_client_without_token_fails_its_proof():
    said, answer = talk(Credentials("u" * 64, "0123abcd", "17.0"), OURS)
    for proof in (bytes(32), b"", answer.payload[:32], said):
        with pytest.raises(HandshakeError) as caught:
            handshake.check_proof(answer.session, proof)
        assert caught.value.found is Found.OTHER_TOKEN


def test_handshake_answer_of_another_conversation_is_refused():
    _, earlier = talk(OURS, OURS)
    said = handshake.hello(OURS, "n2", b"d" * 32)
    with pytest.raises(HandshakeError, match="another token"):
        handshake.accept(OURS, said, earlier.payload)


def test_handshake_other_protocol_is_named():
    said = handshake.hello(OURS, "n2", NONCE).replace(b'"eray":1', b'"eray":2')
    assert handshake.answer(OURS, said, OTHER_NONCE).refused is Found.OTHER_PROTOCOL


@pytest.mark.parametrize(
    "said",
    [b"", b"\xff" * 50, b"[]", b"{}", b'{"eray":"1","key":"k"}', b"[" * 4000, b'{"eray":1,"key":7}', b'{"a":NaN}'],
)
def test_handshake_hello_that_is_none_is_a_stranger(said):
    with pytest.raises(HandshakeError) as caught:
        handshake.answer(OURS, said, NONCE)
    assert caught.value.found is Found.STRANGER


@pytest.mark.parametrize(
    ("header", "words"), [(b"HTTP/1.1", "HTTP/1.1"), (b"eray\xff\xff\xff\xff", "4294967295 bytes")]
)
def test_frame_length_of_a_stranger_is_refused(header, words):
    with pytest.raises(HandshakeError, match=words):
        handshake.frame_length(header, 4096)


def test_handshake_carries_no_secret():
    said, answer = talk(OURS, OURS)
    assert OURS.token.encode() not in said + answer.payload
    assert OURS.token not in repr(OURS)
    assert json.loads(said)["node"] == "n2"


def test_seal_messages_arrive_in_order():
    sealer, opener = Sealer(b"k"), Opener(b"k")
    for message in ({}, {"a": [1, None, "é"]}, {"n": 3}):
        assert opener.open(sealer.seal(message)) == message


def test_seal_replay_loss_change_and_wrong_direction_are_refused():
    sealer, opener = Sealer(b"k"), Opener(b"k")
    first, second, third = (sealer.seal({"n": n}) for n in range(3))
    assert opener.open(first) == {"n": 0}
    for bad, words in [
        (first, "message 0 came where 1 was due"),
        (third, "message 2 came where 1 was due"),
        (second[:-1] + b"!", "changed"),
        (b"\x00" * 7 + b"\x02" + second[8:], "changed"),
        (Sealer(b"other").seal({"n": 1}), "changed"),
        (b"", "changed"),
        (b"short", "changed"),
    ]:
        with pytest.raises(FrameError, match=words):
            opener.open(bad)
    assert opener.open(second) == {"n": 1}


def test_seal_too_large_message_is_refused_and_costs_no_number():
    sealer, opener = Sealer(b"k"), Opener(b"k")
    with pytest.raises(FrameError, match="1048576"):
        sealer.seal({"x": "y" * handshake.MAX_MESSAGE_BYTES})
    assert opener.open(sealer.seal({"n": 1})) == {"n": 1}
