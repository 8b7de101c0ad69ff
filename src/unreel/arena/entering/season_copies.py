"""The clips of a whole season, by what they show: whose are another's."""

from unreel.arena.entering.copies import FingerprintedClip, NearCopy, find_copies
from unreel.arena.entering.look import print_of
from unreel.arena.gathering import open_set, read_controls
from unreel.arena.working_folder import SeasonFolder
from unreel.benchmarks.entry import Entry
from unreel.core.clip import creator_of
from unreel.core.failure import Failure
from unreel.engine.access import StorageAccess, local_copy
from unreel.media.access import media_reader


def find_season_copies(folder: SeasonFolder, access: StorageAccess) -> tuple[NearCopy, ...]:
    """Clips that show what a real clip or another creator's clip shows; controls do so by right and are left out."""
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
                    FingerprintedClip(clip=entry.name, owner=creator_of(entry.origin), own=own)
                )
    return find_copies(printed)
