"""From the groups of a benchmark to pairs of a real clip and a generated one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from unreel.benchmarks.entry import Entry, Rejected
from unreel.core.clip import ClipId
from unreel.core.judgement import Label, Pair
from unreel.core.verdict import Position
from unreel.protocols.preference.order import balance_order


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEntries:
    """Two entries of one group in the order shown, and which of the two is real."""

    first: Entry
    second: Entry
    pair: Pair
    real: Position


def pair_entries(
    clips: Iterable[tuple[Entry, ClipId]], *, seed: int
) -> Iterator[PairedEntries | Rejected]:
    """Each generated clip beside the real clip of its group, and what nothing pairs with.

    Half of the pairs show the real clip first; which half follows from `seed`. All entries are read
    before the first pair comes: a clip may stand far from its partner.
    """
    entries: dict[ClipId, Entry] = {}
    pairs: list[tuple[ClipId, ClipId]] = []
    for couple in _couples(clips, entries):
        if isinstance(couple, Rejected):
            yield couple
        else:
            pairs.append(couple)
    for shown in balance_order(pairs, seed=seed):
        pair = shown.pair
        first, second = entries[pair.first], entries[pair.second]
        yield PairedEntries(first=first, second=second, pair=pair, real=shown.real)


def _couples(
    clips: Iterable[tuple[Entry, ClipId]], entries: dict[ClipId, Entry]
) -> Iterator[tuple[ClipId, ClipId] | Rejected]:
    real: dict[str, ClipId] = {}
    generated: list[tuple[Entry, ClipId]] = []
    for entry, clip in clips:
        known = entries.setdefault(clip, entry)
        if not entry.group:
            yield Rejected(entry.name, "it belongs to no group, so that nothing pairs with it")
        elif known.label is not entry.label:
            why = f"its file equals that of {known.name!r} on the other side"
            yield Rejected(entry.name, why)
        elif entry.label is Label.GENERATED:
            generated.append((entry, clip))
        elif entry.group in real:
            yield Rejected(entry.name, f"group {entry.group!r} has a real clip already")
        else:
            real[entry.group] = clip
    for entry, clip in generated:
        if entry.group in real:
            yield real[entry.group], clip
        else:
            yield Rejected(entry.name, f"group {entry.group!r} has no real clip to pair with")
