"""Search for clips that copy a real clip or another creator's clip."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.arena.season.benchmark import open_set, read_controls
from unreel.arena.season.folder import SeasonFolder
from unreel.arena.submission.clip_inspection import print_of
from unreel.benchmarks.entry import Entry
from unreel.core.clip import get_creator
from unreel.core.failure import Failure
from unreel.engine.storage_access import StorageAccess, local_copy
from unreel.media.access import media_reader
from unreel.media.fingerprint import ClipFingerprint, HeldPrints
from unreel.media.near_duplicates import MOST_BITS, find_matches

COPY_BITS: Final = 16
"""Of 256, from the median frame to that of another clip: a copy, however it was encoded."""
NEAR_BITS: Final = MOST_BITS
"""Maximum distance of possible copies. Clips generated from the first frame of a real one had 40 or
more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintedClip:
    """Fingerprint and owner of a clip; the owner of a real clip is ""."""

    clip: str
    owner: str
    own: ClipFingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class NearCopy:
    """Two clips of different owners that show the same."""

    clip: str
    owner: str
    of: str
    of_owner: str
    """"" where it is the real one."""
    bits: float

    @property
    def is_copy(self) -> bool:
        """Return whether the similarity is too high for an independent clip."""
        return self.bits <= COPY_BITS


def find_copies(clips: Sequence[FingerprintedClip]) -> tuple[NearCopy, ...]:
    """Find pairs of near-identical clips of different owners, nearest first.

    A real clip is always in the field `of`.
    """
    known = {each.clip: each for each in clips}
    found = []
    prints = HeldPrints([(each.clip, each.own) for each in clips])
    for match in find_matches(prints, every=True):
        one, other = known[match.first], known[match.second]
        if one.owner == other.owner:
            continue
        if not one.owner:
            one, other = other, one
        found.append(
            NearCopy(
                clip=one.clip, owner=one.owner, of=other.clip, of_owner=other.owner, bits=match.bits
            )
        )
    return tuple(sorted(found, key=lambda each: (each.bits, each.clip, each.of)))


def find_copies_of_real(copies: Iterable[NearCopy], owner: str) -> dict[str, NearCopy]:
    """Return the clips of `owner` that are near-copies of a real clip, each with its nearest match."""
    nearest: dict[str, NearCopy] = {}
    for each in copies:
        if each.owner == owner and not each.of_owner:
            nearest.setdefault(each.clip, each)
    return nearest


def find_season_copies(folder: SeasonFolder, access: StorageAccess) -> tuple[NearCopy, ...]:
    """Find clips of the season that are near-copies of a real clip or of another creator's clip.

    Controls are excluded, because they are changed copies of real clips.
    """
    benchmark, controls = open_set(folder), read_controls(folder)
    printed = []
    with media_reader(access.settings, trusted=access.trusted) as reader:
        for entry in benchmark:
            if not isinstance(entry, Entry) or entry.name in controls:
                continue
            with local_copy(benchmark.find(entry), access) as file:
                own = print_of(file, reader)
            if not isinstance(own, Failure):
                printed.append(
                    FingerprintedClip(clip=entry.name, owner=get_creator(entry.origin), own=own)
                )
    return find_copies(printed)
