"""Wire format of the reply of a sandboxed child: a prefix, a JSON object, raw blobs, and no code.

    4 bytes  MAGIC
    4 bytes  length of the JSON object, big endian
    n bytes  {"failure": {"reason": ..., "detail": ...}}
             or {"header": {...}, "blobs": [length, ...]}, followed by the blobs
             or {"part": {...}, "blobs": [length, ...]}, the blobs, and another reply after them

The decoder checks every length, type and text.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from unreel.core.failure import Failure, FailureReason
from unreel.core.safe_text import sanitise_line
from unreel.media.messages import TaskReplyPayload

MAGIC = b"UNRL"
MAX_HEADER_BYTES = 1 << 18
"""Maximum size of a header. The longest valid one, of a clip with 1,000 sound tracks, has 90 kB; others below 20 kB."""
MAX_BLOBS = 64
"""Maximum number of blobs in a reply. A scan sends up to 23, all others at most one."""
_MAX_OPENINGS = 4096
"""Maximum number of objects and lists in a header; the longest valid one has 1,100."""
_DEEPEST = 32
"""Maximum nesting depth of a header; below 8 in valid ones. Python's own limit is not used, as any code may set it."""
_MAX_DIGITS = 40
_PREFIX = struct.Struct(">4sI")
_LONGEST_DETAIL = 300
_ESCAPES = re.compile(r"\\.")
_TEXTS = re.compile(r'"[^"]*"')
_STEPS = re.compile(r"[\[{}\]]")

_REASONS = frozenset(
    {
        FailureReason.NOT_A_FILE,
        FailureReason.FORMAT_REFUSED,
        FailureReason.CODEC_REFUSED,
        FailureReason.TOO_MANY_PIXELS,
        FailureReason.TOO_LONG,
        FailureReason.NO_VIDEO,
        FailureReason.UNDECODABLE,
        FailureReason.OUT_OF_TIME,
        FailureReason.OUT_OF_MEMORY,
        FailureReason.WORKER_DIED,
    }
)
"""Failure reasons that a child may report for a file. Reasons about servers or budgets would cause a retry."""


class MalformedSandboxReplyError(Exception):
    """Error for a reply whose bytes do not match the wire format."""


class OversizedSandboxReplyError(Exception):
    """Error for a reply that announces more bytes than its limit."""


@dataclass(frozen=True, slots=True)
class SandboxReplyPart:
    """Part of a sandbox reply, which is followed by further parts or the final reply."""

    payload: TaskReplyPayload


def encode_sandbox_reply(result: TaskReplyPayload | SandboxReplyPart | Failure) -> list[bytes]:
    """Encode the reply of a sandboxed child as blocks of bytes, in the order of writing."""
    body: dict[str, Any]
    blobs: tuple[bytes, ...] = ()
    match result:
        case Failure():
            body = {"failure": {"reason": result.reason.value, "detail": result.detail}}
        case SandboxReplyPart(payload):
            blobs = payload.blobs
            body = {"part": payload.header, "blobs": [len(blob) for blob in blobs]}
        case TaskReplyPayload():
            blobs = result.blobs
            body = {"header": result.header, "blobs": [len(blob) for blob in blobs]}
    text = json.dumps(body, allow_nan=False).encode()
    return [_PREFIX.pack(MAGIC, len(text)), text, *blobs]


def decode_sandbox_reply(
    take: Callable[[int], bytes], *, reply_bytes: int
) -> TaskReplyPayload | SandboxReplyPart | Failure:
    """Decode a reply, or one part of it, by calls of `take(n)`, which returns the next `n` bytes.

    Raises:
        MalformedSandboxReplyError: A length, a type or a text is invalid.
        OversizedSandboxReplyError: The reply would exceed `reply_bytes`; no further bytes were read.
    """
    magic, length = _PREFIX.unpack(take(_PREFIX.size))
    _require_valid_reply(magic == MAGIC, "wrong first bytes")
    _require_valid_reply(
        length <= MAX_HEADER_BYTES, f"the header is longer than {MAX_HEADER_BYTES} bytes"
    )
    body = _parse_json_header(take(length))
    if body.keys() == {"failure"}:
        fields = body["failure"]
        try:
            reason, detail = FailureReason(fields["reason"]), fields["detail"]
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedSandboxReplyError("the failure reason is unknown") from error
        _require_valid_reply(reason in _REASONS, "this failure reason is not allowed for a file")
        _require_valid_reply(isinstance(detail, str), "the detail is not text")
        return Failure(reason, sanitise_reply_text(detail))
    kind = next(iter(body.keys() - {"blobs"}), "")
    _require_valid_reply(
        body.keys() in ({"header", "blobs"}, {"part", "blobs"}), "the header has other fields"
    )
    header, sizes = body[kind], _require_blob_sizes(body["blobs"])
    _require_valid_reply(isinstance(header, dict), "the header is not of the known form")
    if _PREFIX.size + length + sum(sizes) > reply_bytes:
        raise OversizedSandboxReplyError
    payload = TaskReplyPayload(header=header, blobs=tuple(take(size) for size in sizes))
    return payload if kind == "header" else SandboxReplyPart(payload)


def _parse_json_header(data: bytes) -> dict[str, Any]:
    _require_valid_reply(
        data.count(b"[") + data.count(b"{") <= _MAX_OPENINGS, "the header is too full"
    )
    try:
        text = data.decode()
        steps = _STEPS.findall(_TEXTS.sub("", _ESCAPES.sub("", text)))
        depth = max(accumulate(1 if step in "[{" else -1 for step in steps), default=0)
        _require_valid_reply(depth <= _DEEPEST, "the header is too deep")
        body = json.loads(
            text,
            parse_constant=_parse_finite_number,
            parse_float=_parse_finite_number,
            parse_int=_parse_short_integer,
            object_pairs_hook=_build_unique_fields,
        )
        if "\\u" in text:  # A lone surrogate would pass here and fail later, when it is stored.
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise MalformedSandboxReplyError("the header is not JSON") from error
    _require_valid_reply(isinstance(body, dict), "the header is not an object")
    return dict(body)


def _parse_finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number without an end is not JSON")
    return value


def _parse_short_integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("no field of a header takes a number of that length")
    return int(text)


def _build_unique_fields(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field comes twice")
    return fields


def _require_blob_sizes(sizes: Any) -> list[int]:
    _require_valid_reply(
        isinstance(sizes, list) and len(sizes) <= MAX_BLOBS, "the list of blobs is invalid"
    )
    _require_valid_reply(
        all(type(size) is int and size >= 0 for size in sizes), "a blob's size is invalid"
    )
    return list(sizes)


def _require_valid_reply(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise MalformedSandboxReplyError(otherwise)


def sanitise_reply_text(text: str) -> str:
    """Return text of a sandboxed child on one line, truncated, without terminal control characters."""
    line = sanitise_line(" ".join(text.split()))
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 3] + "..."
