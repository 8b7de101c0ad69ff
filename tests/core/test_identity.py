import hashlib
from pathlib import Path

import pytest

from unreel.core.content_ids import (
    LARGEST_CLIP_BYTES,
    compute_bytes_clip_id,
    compute_clip_id,
    compute_placeholder_clip_id,
    digest,
)
from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason


def test_a_clip_is_known_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "clip"
    file.write_bytes(b"film")
    assert (
        compute_clip_id(file)
        == compute_bytes_clip_id(b"film")
        == hashlib.sha256(b"film").hexdigest()
    )


def test_lists_of_parts_do_not_collide() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert compute_placeholder_clip_id("a") == digest("a")


def test_a_hole_larger_than_any_clip_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "hole"
    with file.open("wb") as out:
        out.truncate(LARGEST_CLIP_BYTES + 1)
    with pytest.raises(MediaError) as raised:
        compute_clip_id(file)
    assert raised.value.failure.reason is FailureReason.TOO_LARGE
