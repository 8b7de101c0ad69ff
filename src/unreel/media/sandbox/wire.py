"""The reply of a child, as bytes: a prefix, a JSON object, then raw blobs. Nothing here can run.

    4 bytes  MAGIC
    4 bytes  length of the JSON object, big endian
    n bytes  {"failure": {"reason": ..., "detail": ...}}
             or {"header": {...}, "blobs": [length, ...]}, followed by the blobs

The reading side trusts no length, no type and no text.
"""

import json
import struct
from collections.abc import Callable
from typing import Any, Final

from unreel.core.failure import Failure, FailureReason
from unreel.core.plain import plain
from unreel.media.payload import Payload

MAGIC: Final = b"UNRL"
_PREFIX: Final = struct.Struct(">4sI")
_LONGEST_DETAIL: Final = 300
_MOST_BLOBS: Final = 100_000


class MalformedReplyError(Exception):
    """The bytes of a reply are not what the wire format says."""


class OversizedReplyError(Exception):
    """A reply announces more bytes than its limit."""


def encode(result: Payload | Failure) -> list[bytes]:
    """The pieces of a reply, in the order in which they are written."""
    body: dict[str, Any]
    if isinstance(result, Failure):
        body = {"failure": {"reason": result.reason.value, "detail": result.detail}}
        blobs: tuple[bytes, ...] = ()
    else:
        blobs = result.blobs
        body = {"header": result.header, "blobs": [len(blob) for blob in blobs]}
    text = json.dumps(body, allow_nan=False).encode()
    return [_PREFIX.pack(MAGIC, len(text)), text, *blobs]


def decode(take: Callable[[int], bytes], *, reply_bytes: int) -> Payload | Failure:
    """The reply that `take(n)` gives piece by piece.

    Raises:
        MalformedReplyError: a length, a type or a word is wrong.
        OversizedReplyError: it would be longer than `reply_bytes`; nothing beyond was taken.
    """
    magic, length = _PREFIX.unpack(take(_PREFIX.size))
    if magic != MAGIC:
        msg = "it does not start as a reply"
        raise MalformedReplyError(msg)
    left = reply_bytes - _PREFIX.size - length
    if left < 0:
        raise OversizedReplyError
    body = _object(take(length))
    if "failure" in body:
        return _failure(body["failure"])
    header, sizes = body.get("header"), _sizes(body.get("blobs"))
    if not isinstance(header, dict) or sizes is None:
        msg = "its header is not of the known form"
        raise MalformedReplyError(msg)
    if sum(sizes) > left:
        raise OversizedReplyError
    return Payload(header=header, blobs=tuple(take(size) for size in sizes))


def _object(text: bytes) -> dict[str, Any]:
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
        if b"\\u" in text:  # Half a surrogate pair would pass here and break whoever stores it.
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        msg = "its header is not JSON"
        raise MalformedReplyError(msg) from error
    if not isinstance(body, dict):
        msg = "its header is not an object"
        raise MalformedReplyError(msg)
    return body


def _refuse_constant(name: str) -> None:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _sizes(given: Any) -> list[int] | None:
    if not isinstance(given, list) or len(given) > _MOST_BLOBS:
        return None
    return given if all(type(size) is int and size >= 0 for size in given) else None


def _failure(words: Any) -> Failure:
    try:
        reason, detail = FailureReason(words["reason"]), words["detail"]
    except (KeyError, TypeError, ValueError) as error:
        msg = "it names no known reason"
        raise MalformedReplyError(msg) from error
    if not isinstance(detail, str):
        msg = "its detail is not text"
        raise MalformedReplyError(msg)
    return Failure(reason, readable(detail))


def readable(text: str) -> str:
    """`text` on one line and cut short, without characters that could steer a terminal."""
    kept = plain(" ".join(text.split()))
    return kept if len(kept) <= _LONGEST_DETAIL else kept[: _LONGEST_DETAIL - 3] + "..."
