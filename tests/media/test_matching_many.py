"""Sets too large for all pairs: the same families, found by bits that hashes share."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reliability.disk import disk
from unreel.media import near_duplicates
from unreel.media.near_duplicates import find_near_duplicates
from unreel.stats.clusters import group_connected_names

__all__ = ["disk"]  # a fixture
WAYS, FRAMES, WORDS = 13, 8, 4


@dataclass
class Arrays:
    """Fingerprints in two arrays, how many were read at once at most, and how often all of them."""

    sketches: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    most_read: int = 0
    readings: int = 0
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = [f"{place:06d}" for place in range(len(self.sketches))]

    def words(self, places: NDArray[np.intp]) -> NDArray[np.uint64]:
        self.most_read = max(self.most_read, len(places))
        return self.hashes[places]

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint64]]]:
        self.readings += 1
        backwards = np.arange(len(self.sketches))[::-1]  # nobody promised an order
        for start in range(0, len(backwards), 1_000):
            places = backwards[start : start + 1_000]
            yield places, self.words(places)


def drawn(n_clips: int, seed: int = 0) -> Arrays:
    """Clips that have nothing in common."""
    draw = np.random.default_rng(seed)
    hashes = draw.integers(0, 1 << 64, (n_clips, WAYS, FRAMES, WORDS), np.uint64)
    return Arrays(draw.integers(0, 256, (n_clips, 64), np.uint8), hashes)


def copied(prints: Arrays, places: NDArray[np.intp], *, bits: int, seed: int = 1) -> Arrays:
    """Followed by copies of some, each hash of which differs by about so many bits."""
    draw = np.random.default_rng(seed)
    own = prints.hashes[places]
    flips = draw.random((*own.shape, 64)) < bits / 256
    noise = np.packbits(flips, axis=-1).view(np.uint64).reshape(own.shape)
    return Arrays(
        np.concatenate([prints.sketches, prints.sketches[places]]),
        np.concatenate([prints.hashes, own ^ noise]),
    )


def families(prints: Arrays, *, known: int = 0, seed: int = 0) -> list[list[str]]:
    found = find_near_duplicates(prints, known=known, seed=seed)
    groups = group_connected_names(prints.names, [(match.first, match.second) for match in found])
    return [group for group in groups if len(group) > 1]


@pytest.fixture
def banded(monkeypatch) -> None:
    """Every set is a large one."""
    monkeypatch.setattr(near_duplicates, "FEW", 0)


@pytest.mark.parametrize("bits", [0, 10, 20])
@pytest.mark.usefixtures("banded")
def test_copies_are_found_among_many(bits) -> None:
    prints = copied(drawn(2_000), np.arange(100), bits=bits)
    found = {(match.first, match.second) for match in find_near_duplicates(prints)}
    planted = {(prints.names[place], prints.names[2_000 + place]) for place in range(100)}
    assert found <= planted
    assert len(found) >= 99


@pytest.mark.usefixtures("banded")
def test_a_copy_is_found_by_any_trim_and_without_its_top_or_bottom() -> None:
    plain = drawn(WAYS)
    copy = drawn(WAYS, seed=5)
    copy.sketches = plain.sketches
    for way in range(WAYS):
        copy.hashes[way, 0 if way < 11 else way] = plain.hashes[way, way]
    both = Arrays(
        np.concatenate([plain.sketches, copy.sketches]), np.concatenate([plain.hashes, copy.hashes])
    )
    assert families(both) == [[both.names[way], both.names[WAYS + way]] for way in range(WAYS)]


def test_a_large_set_has_the_families_that_all_pairs_make(monkeypatch) -> None:
    prints = copied(drawn(400), np.arange(200) // 5, bits=8)
    every = families(prints)
    monkeypatch.setattr(near_duplicates, "FEW", 0)
    assert len(every) == 40
    assert families(prints) == every
    assert find_near_duplicates(prints, seed=3) == find_near_duplicates(prints, seed=3)


@pytest.mark.parametrize("few", [0, 10_000])
def test_a_crowd_of_one_scene_is_one_family_told_by_fewer_pairs_than_all(monkeypatch, few) -> None:
    monkeypatch.setattr(near_duplicates, "FEW", few)
    prints = copied(drawn(50), np.zeros(600, np.intp), bits=6)
    found = find_near_duplicates(prints)
    groups = group_connected_names(prints.names, [(match.first, match.second) for match in found])
    assert [len(group) for group in groups if len(group) > 1] == [601]
    assert len(found) < 600 * 200


@pytest.mark.parametrize("few", [0, 10_000])
def test_clips_that_are_all_black_are_one_family(monkeypatch, few) -> None:
    monkeypatch.setattr(near_duplicates, "FEW", few)
    prints = drawn(2_000)
    prints.sketches[1_000:] = 16
    prints.hashes[1_000:] = 0
    assert [len(group) for group in families(prints)] == [1_000]


@pytest.mark.usefixtures("banded")
def test_a_black_frame_that_many_share_neither_joins_them_nor_hides_copies() -> None:
    prints = drawn(1_000)
    prints.hashes[:, :, :3] = 0
    prints = copied(prints, np.arange(20), bits=10)
    prints.hashes[:, :, :3] = 0
    assert families(prints) == [[prints.names[n], prints.names[1_000 + n]] for n in range(20)]


@pytest.mark.usefixtures("banded")
def test_a_disk_without_room_for_a_large_set_is_told_as_the_system_tells_it(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        find_near_duplicates(drawn(4_000), inside=disk)
    assert not list(disk.iterdir())
