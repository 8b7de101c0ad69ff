"""A reply survives its trip whole, and no bytes can hurt the side that reads them."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox.reply_format import (
    MAGIC,
    MAX_BLOBS,
    MAX_HEADER_BYTES,
    MalformedSandboxReplyError,
    OversizedSandboxReplyError,
    SandboxReplyPart,
    decode_sandbox_reply,
    encode_sandbox_reply,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | WORDS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


class _ShortError(Exception):
    pass


def _decode(
    data: bytes, *, reply_bytes: int = 2**20
) -> TaskReplyPayload | SandboxReplyPart | Failure:
    stream = io.BytesIO(data)

    def take(size: int) -> bytes:
        piece = stream.read(size)
        if len(piece) < size:
            raise _ShortError
        return piece

    return decode_sandbox_reply(take, reply_bytes=reply_bytes)


@given(st.dictionaries(WORDS, JSON, max_size=4), st.lists(st.binary(max_size=100), max_size=4))
def test_a_payload_arrives_as_it_was_sent(header: dict[str, object], blobs: list[bytes]) -> None:
    payload = TaskReplyPayload(header, tuple(blobs))
    assert _decode(b"".join(encode_sandbox_reply(payload))) == payload
    assert _decode(b"".join(encode_sandbox_reply(SandboxReplyPart(payload)))) == SandboxReplyPart(
        payload
    )


OF_FILES = [
    "not-a-file", "format-refused", "codec-refused", "too-many-pixels", "too-long", "no-video",
    "undecodable", "out-of-time", "out-of-memory", "worker-died",
]  # fmt: skip


@pytest.mark.parametrize("reason", FailureReason)
def test_a_failure_arrives_as_it_was_sent_if_a_file_can_have_it(reason: FailureReason) -> None:
    failure = Failure(reason, "why it is so")
    data = b"".join(encode_sandbox_reply(failure))
    if reason.value in OF_FILES:
        assert _decode(data) == failure
    else:  # Such as `rate-limited`, which would have the run ask again and again.
        with pytest.raises(MalformedSandboxReplyError, match="reason"):
            _decode(data)


def _framed(text: bytes) -> bytes:
    return struct.pack(">4sI", MAGIC, len(text)) + text


REFUSED = {
    "too long": b'{"header": {}, "blobs": [],' + b" " * MAX_HEADER_BYTES + b"}",
    "too many openings": b'{"header": {"a": [' + b"[]," * 5000 + b'1]}, "blobs": []}',
    "too deep": b'{"header": {"a": ' + b"[" * 40 + b"]" * 40 + b'}, "blobs": []}',
    "far too deep": b'{"header": {"a": ' + b"[" * 4000 + b"]" * 4000 + b'}, "blobs": []}',
    "too deep behind a quote": b'{"header": {"a": "\\"", "b": '
    + b"[" * 40
    + b"]" * 40
    + b'}, "blobs": []}',
    "infinity": b'{"header": {"a": 1e999}, "blobs": []}',
    "minus infinity": b'{"header": {"a": -Infinity}, "blobs": []}',
    "a long number": b'{"header": {"a": ' + b"9" * 41 + b'}, "blobs": []}',
    "a field twice": b'{"header": {"a": 1, "a": 2}, "blobs": []}',
    "a header twice": b'{"header": {}, "header": {}, "blobs": []}',
    "both kinds": b'{"header": {}, "part": {}, "blobs": []}',
    "another field": b'{"header": {}, "blobs": [], "more": 1}',
    "a failure and a header": b'{"failure": {}, "header": {}, "blobs": []}',
    "too many blobs": b'{"header": {}, "blobs": [' + b"0," * MAX_BLOBS + b"0]}",
    "a blob that is true": b'{"header": {}, "blobs": [true]}',
    "blobs in an object": b'{"header": {}, "blobs": {}}',
    "UTF-16": '{"header": {}, "blobs": []}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"header": {}, "blobs": []}',
    "half a surrogate": b'{"header": {"\\udfff": 1}, "blobs": []}',
    "half a surrogate in UTF-8": b'{"header": {"\xed\xa0\x80": 1}, "blobs": []}',
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_header_that_no_task_sends_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedSandboxReplyError):
        _decode(_framed(text))


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((MalformedSandboxReplyError, _ShortError)):
        _decode(data)


@given(st.data())
def test_a_damaged_reply_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    sound = b"".join(
        encode_sandbox_reply(TaskReplyPayload({"a": [1, {"b": "c"}]}, (b"12345", b"")))
    )
    where = data.draw(st.integers(0, len(sound) - 1))
    damaged = sound[:where] + data.draw(st.binary(max_size=4)) + sound[where + 1 :]
    try:
        result = _decode(damaged)
    except (MalformedSandboxReplyError, OversizedSandboxReplyError, _ShortError):
        return
    assert isinstance(result, TaskReplyPayload | SandboxReplyPart | Failure)
