"""A reply survives its trip whole, and no bytes can hurt the side that reads them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.failure import Failure, FailureReason
from unreel.core.plain import plain
from unreel.media.payload import Payload
from unreel.media.sandbox.wire import (
    MalformedReplyError,
    OversizedReplyError,
    decode,
    encode,
    readable,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | WORDS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


class _ShortError(Exception):
    pass


def _decode(data: bytes, *, reply_bytes: int = 2**20) -> Payload | Failure:
    stream = io.BytesIO(data)

    def take(size: int) -> bytes:
        piece = stream.read(size)
        if len(piece) < size:
            raise _ShortError
        return piece

    return decode(take, reply_bytes=reply_bytes)


@given(st.dictionaries(WORDS, JSON, max_size=4), st.lists(st.binary(max_size=100), max_size=4))
def test_a_payload_arrives_as_it_was_sent(header: dict[str, object], blobs: list[bytes]) -> None:
    payload = Payload(header, tuple(blobs))
    assert _decode(b"".join(encode(payload))) == payload


@pytest.mark.parametrize("reason", FailureReason)
def test_a_failure_arrives_as_it_was_sent(reason: FailureReason) -> None:
    failure = Failure(reason, "why it is so")
    assert _decode(b"".join(encode(failure))) == failure


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((MalformedReplyError, _ShortError)):
        _decode(data)


@given(st.data())
def test_a_damaged_reply_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    sound = b"".join(encode(Payload({"a": [1, {"b": "c"}]}, (b"12345", b""))))
    where = data.draw(st.integers(0, len(sound) - 1))
    damaged = sound[:where] + data.draw(st.binary(max_size=4)) + sound[where + 1 :]
    try:
        result = _decode(damaged)
    except (MalformedReplyError, OversizedReplyError, _ShortError):
        return
    assert isinstance(result, Payload | Failure)


def test_a_reply_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    data = b"".join(encode(Payload({"a": 1}, (b"12345",))))
    assert isinstance(_decode(data, reply_bytes=len(data)), Payload)
    with pytest.raises(OversizedReplyError):
        _decode(data, reply_bytes=len(data) - 1)


def test_a_value_that_json_does_not_know_is_refused_when_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Payload({"a": float("nan")}))


@given(st.text())
def test_details_are_one_short_plain_line(text: str) -> None:
    shown = readable(text)
    assert shown == plain(shown)
    assert len(shown) <= 300
