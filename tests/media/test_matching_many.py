"""Sets too large for all pairs: the same families, found by bits that hashes share."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reliability.disk import disk
from unreel.media import near_duplicates
from unreel.media.fingerprint import ClipFingerprint, InMemoryFingerprints
from unreel.media.hash_bands import CROWD, FrameHashMatcher, sample_hash_band
from unreel.media.near_duplicates import DuplicateClipFamilies, find_near_duplicates
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
        np.concatenate([plain.sketches, copy.sketches]),
        np.concatenate([plain.hashes, copy.hashes]),
    )
    assert families(both) == [[both.names[way], both.names[WAYS + way]] for way in range(WAYS)]


def test_a_large_set_has_the_families_that_all_pairs_make(monkeypatch) -> None:
    prints = copied(drawn(400), np.arange(200) // 5, bits=8)
    every = families(prints)
    monkeypatch.setattr(near_duplicates, "FEW", 0)
    assert len(every) == 40
    assert families(prints) == every
    assert find_near_duplicates(prints, seed=3) == find_near_duplicates(prints, seed=3)


@pytest.mark.usefixtures("banded")
def test_pairs_are_looked_at_in_parts_and_match_as_they_do_at_once(monkeypatch) -> None:
    prints = copied(drawn(400), np.arange(200) // 5, bits=8)
    at_once, sizes, levelled = (
        find_near_duplicates(prints),
        [0],
        near_duplicates._normalise_sketches,
    )
    monkeypatch.setattr(near_duplicates, "_CODES_AT_ONCE", 50)
    monkeypatch.setattr(
        near_duplicates,
        "_normalise_sketches",
        lambda grids: sizes.append(len(grids)) or levelled(grids),
    )
    assert find_near_duplicates(prints) == at_once
    assert max(sizes) == 50


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
def test_every_pair_of_a_crowd_is_told_to_who_asks_for_it() -> None:
    prints = copied(drawn(3), np.zeros(CROWD + 5, np.intp), bits=6)
    n_alike = CROWD + 6
    assert len(find_near_duplicates(prints, all_pairs=True)) == n_alike * (n_alike - 1) // 2


@pytest.mark.usefixtures("banded")
def test_a_black_frame_that_many_share_neither_joins_them_nor_hides_copies() -> None:
    prints = drawn(1_000)
    prints.hashes[:, :, :3] = 0
    prints = copied(prints, np.arange(20), bits=10)
    prints.hashes[:, :, :3] = 0
    assert families(prints) == [[prints.names[n], prints.names[1_000 + n]] for n in range(20)]


@pytest.mark.usefixtures("banded")
def test_sketches_that_are_all_flat_leave_it_to_the_hashes() -> None:
    prints = copied(drawn(500), np.arange(10), bits=10)
    prints.sketches[:] = 128
    assert families(prints) == [[prints.names[n], prints.names[500 + n]] for n in range(10)]


@pytest.mark.usefixtures("banded")
def test_clips_of_other_sketches_are_no_match_in_a_large_set_either() -> None:
    prints = copied(drawn(100), np.arange(2), bits=0)
    prints.sketches[100] = 255 - prints.sketches[100]
    assert families(prints) == [[prints.names[1], prints.names[101]]]


@pytest.mark.usefixtures("banded")
def test_of_a_new_batch_only_pairs_with_one_of_it_are_told() -> None:
    prints = copied(drawn(300), np.repeat(np.arange(5), 2), bits=5)
    found = find_near_duplicates(prints, known=309)
    assert {match.second for match in found} == {prints.names[309]}
    assert {match.first for match in found} == {prints.names[4], prints.names[308]}


@pytest.mark.usefixtures("banded")
def test_hashes_of_a_large_set_are_read_once_and_in_blocks() -> None:
    prints = drawn(5_000)
    find_near_duplicates(prints)
    assert prints.readings == 1
    assert prints.most_read <= 1_000


@pytest.mark.usefixtures("banded")
def test_a_large_set_leaves_no_file_behind(tmp_path: Path) -> None:
    prints = copied(drawn(200), np.arange(10), bits=5)
    assert find_near_duplicates(prints, inside=tmp_path) == find_near_duplicates(prints)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("banded")
def test_a_disk_without_room_for_a_large_set_is_told_as_the_system_tells_it(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        find_near_duplicates(drawn(4_000), inside=disk)
    assert not list(disk.iterdir())


@pytest.mark.usefixtures("banded")
def test_held_fingerprints_come_in_blocks_too() -> None:
    looks = copied(drawn(5_000), np.arange(10), bits=5)
    held = InMemoryFingerprints(
        [
            (name, ClipFingerprint(sketch=sketch.tobytes(), hashes=hashes.tobytes()))
            for name, sketch, hashes in zip(looks.names, looks.sketches, looks.hashes, strict=True)
        ]
    )
    assert find_near_duplicates(held) == find_near_duplicates(looks)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 255), max_size=12))
def test_keys_of_a_band_are_equal_exactly_where_its_bits_are(seed, flips) -> None:
    draw = np.random.default_rng(seed)
    band = sample_hash_band(draw, 24)
    one = draw.integers(0, 1 << 64, (1, WORDS), np.uint64)
    other = one.copy()
    for bit in flips:
        other[0, bit // 64] ^= np.uint64(1 << bit % 64)
    agree = not ((one ^ other) & band.masks).any()
    assert (band.keys(one) == band.keys(other))[0] == agree


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
def test_families_are_those_that_joining_all_pairs_makes(pairs) -> None:
    own = DuplicateClipFamilies(12)
    for one, other in pairs:
        own.join(one, other)
    names = [str(place) for place in range(12)]
    groups = group_connected_names(names, [(str(one), str(other)) for one, other in pairs])
    tops = own.of(np.arange(12))
    assert {tuple(np.flatnonzero(tops == top).tolist()) for top in tops} == {
        tuple(map(int, group)) for group in groups
    }
    assert own.sizes(tops).tolist() == [(tops == top).sum() for top in tops]


def test_a_crowd_is_not_looked_at_pair_by_pair() -> None:
    hashes = np.zeros((CROWD + 1, WORDS), np.uint64)
    hashed = FrameHashMatcher(sides=(hashes,), known=0, most_bits=64)
    pairs, crowded = hashed.meet(sample_hash_band(np.random.default_rng(0), 16))
    assert len(pairs) == 0
    assert len(crowded) == CROWD + 1
