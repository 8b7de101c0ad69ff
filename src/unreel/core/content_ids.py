"""Ids that are computed from content: hashes of texts, and clip ids."""

import hashlib
import os
from pathlib import Path

from unreel.core.clip import ClipId
from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason

LARGEST_CLIP_BYTES = 16 << 30


def digest(*parts: str) -> str:
    """Compute the SHA-256 of `parts`, each with its length, so that different lists never collide."""
    framed = bytearray()
    for part in parts:
        data = part.encode()
        framed += len(data).to_bytes(8, "big")
        framed += data
    return hashlib.sha256(framed).hexdigest()


def compute_placeholder_clip_id(*parts: str) -> ClipId:
    """Return a clip id, computed from `parts`, for a clip whose bytes are not available."""
    return ClipId(digest(*parts))


def compute_bytes_clip_id(data: bytes) -> ClipId:
    """Return the id of a file with the content `data`."""
    return ClipId(hashlib.sha256(data).hexdigest())


def compute_clip_id(path: Path) -> ClipId:
    """Return the id of the clip at `path`: the SHA-256 of its bytes.

    Raise `MediaError` if the file exceeds the maximum clip size.
    """
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > LARGEST_CLIP_BYTES:
            raise MediaError(FailureReason.TOO_LARGE, f"{size_bytes} bytes")
        return ClipId(hashlib.file_digest(file, "sha256").hexdigest())
