"""Ids that follow from content alone."""

import hashlib
import os
from pathlib import Path
from typing import Final

from unreel.core.clip import ClipId
from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason

LARGEST_CLIP_BYTES: Final = 16 << 30


def digest(*parts: str) -> str:
    """SHA-256 over `parts`, each with its length, so that no two lists of parts collide."""
    framed = bytearray()
    for part in parts:
        data = part.encode()
        framed += len(data).to_bytes(8, "big")
        framed += data
    return hashlib.sha256(framed).hexdigest()


def digest_id(*parts: str) -> ClipId:
    """Return an id for a clip whose bytes are not available; no file has it."""
    return ClipId(digest(*parts))


def bytes_id(data: bytes) -> ClipId:
    """The id of a file that holds `data`."""
    return ClipId(hashlib.sha256(data).hexdigest())


def clip_id(path: Path) -> ClipId:
    """The id of the clip at `path`: SHA-256 of its bytes.

    Raises:
        MediaError: The file is larger than a clip can be: a hole of a terabyte takes no room on disk.
    """
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > LARGEST_CLIP_BYTES:
            raise MediaError(Failure(FailureReason.TOO_LARGE, f"{size_bytes} bytes"))
        return ClipId(hashlib.file_digest(file, "sha256").hexdigest())
