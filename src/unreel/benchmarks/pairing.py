"""Pairs of a real clip and a generated one: from groups or names of a benchmark, with a presentation order."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from unreel.benchmarks.entry import Entry, Rejected
from unreel.core.clip import ClipId
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Pair
from unreel.core.verdict import Position


def balance_pair_order(
    pairs: Sequence[tuple[ClipId, ClipId]], *, seed: int
) -> list[tuple[Pair, Position]]:
    """Return (real, generated) pairs in the order shown, with the position of the real clip.

    The real clip is first in half of the pairs; an odd one is random.
    """
    # Not a secret: the same seed gives the same plan again.
    generator = random.Random(seed)  # noqa: S311
    orders = [Position.FIRST, Position.SECOND] * ((len(pairs) + 1) // 2)
    if generator.random() < 1 / 2:
        orders.reverse()
    orders = orders[: len(pairs)]
    generator.shuffle(orders)
    return [
        (Pair(real, generated) if order is Position.FIRST else Pair(generated, real), order)
        for (real, generated), order in zip(pairs, orders, strict=True)
    ]


BETWEEN = " | "
"""Separator between the names of two clips, in the order shown, in the name of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEntries:
    """A real and a generated entry of one scene in the order shown, and which one is real."""

    first: Entry
    second: Entry
    pair: Pair
    real: Position

    @property
    def shown(self) -> tuple[Entry, Entry]:
        """Return both entries in the order shown."""
        return self.first, self.second

    @property
    def name(self) -> str:
        """Return the name of the pair: both entry names, in the order shown."""
        return format_pair_name(self.first.name, self.second.name)

    @property
    def split(self) -> str:
        """Return the split of both entries; "" if the splits differ."""
        return self.first.split if self.first.split == self.second.split else ""

    @property
    def group(self) -> str:
        """Return the group of both entries, which is their scene; "" if unknown."""
        return self.first.group or self.second.group


def format_pair_name(*names: str) -> str:
    """Return the name of a pair from the names of its clips, in the order shown."""
    return BETWEEN.join(names)


def pair_real_and_generated_clips(
    clips: Iterable[tuple[Entry, ClipId]], *, seed: int
) -> Iterator[PairedEntries | Rejected]:
    """Yield each generated clip paired with the real clip of its group, and clips without a partner.

    Half of the pairs show the real clip first; `seed` determines which half. All entries are read
    before the first pair is returned, because two partners can be far apart.
    """
    entries: dict[ClipId, Entry] = {}
    pairs: list[tuple[ClipId, ClipId]] = []
    for couple in _iter_clip_pairs(clips, entries):
        if isinstance(couple, Rejected):
            yield couple
        else:
            pairs.append(couple)
    for pair, position in balance_pair_order(pairs, seed=seed):
        first, second = entries[pair.first], entries[pair.second]
        yield PairedEntries(first=first, second=second, pair=pair, real=position)


def _iter_clip_pairs(
    clips: Iterable[tuple[Entry, ClipId]], entries: dict[ClipId, Entry]
) -> Iterator[tuple[ClipId, ClipId] | Rejected]:
    real: dict[str, ClipId] = {}
    generated: list[tuple[Entry, ClipId]] = []
    for entry, clip in clips:
        known = entries.setdefault(clip, entry)
        if not entry.group:
            yield Rejected(entry.name, "no group, so the clip cannot be paired")
        elif known.label is not entry.label:
            reason = f"the file equals that of {known.name!r} on the other side"
            yield Rejected(entry.name, reason)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPairs:
    """Pairs of a benchmark, each with the name in the answers that requested it, and unusable names."""

    pairs: tuple[tuple[PairedEntries, str | None], ...]
    """Pairs in benchmark order, one per requested order, with the requesting name; `None` if not requested."""
    unknown: tuple[str, ...]
    """Names that do not consist of two clips of the benchmark."""
    rejected: tuple[Rejected, ...]
    """Requested names whose clips are not a pair, and clips without a partner."""


def find_requested_pairs(entries: Sequence[Entry], names: Collection[str]) -> RequestedPairs:
    """Find the pairs of entries that `names` request, and the pairs that no name requests."""
    requested: dict[tuple[str, str], tuple[PairedEntries, str]] = {}
    unknown: list[str] = []
    rejected: list[Rejected] = []
    by_name = {entry.location: entry for entry in entries} | {e.name: e for e in entries}
    for name in names:
        try:
            paired = _find_pair_by_name(name, by_name)
        except InvalidValueError as error:
            rejected.append(Rejected(name, str(error)))
            continue
        if paired is None:
            unknown.append(name)
        elif (key := (paired.first.name, paired.second.name)) in requested:
            reason = f"answered as {requested[key][1]!r} too. Keep one answer for each order shown"
            rejected.append(Rejected(name, reason))
        else:
            requested[key] = (paired, name)
    seen = {name for key in requested for name in key}
    ids = {compute_placeholder_clip_id("entry", entry.name): entry for entry in entries}
    pairs: list[tuple[PairedEntries, str | None]] = []
    for couple in _iter_clip_pairs(((entry, clip) for clip, entry in ids.items()), {}):
        if isinstance(couple, Rejected):
            rejected.extend([] if couple.name in seen else [couple])
            continue
        real, generated = (ids[clip] for clip in couple)
        orders = ((real.name, generated.name), (generated.name, real.name))
        matches = [requested.pop(order) for order in orders if order in requested]
        pairs.extend(matches or [(_build_paired_entries(real, generated), None)])
    pairs.extend(requested.values())
    return RequestedPairs(pairs=tuple(pairs), unknown=tuple(unknown), rejected=tuple(rejected))


def _find_pair_by_name(name: str, by_name: dict[str, Entry]) -> PairedEntries | None:
    """Return the pair that `name` requests; `None` if it does not contain two known names.

    Raise `InvalidValueError` if the name can be split in several ways, or its clips are not a pair.
    """
    parts = name.split(BETWEEN)
    cuts = [(BETWEEN.join(parts[:i]), BETWEEN.join(parts[i:])) for i in range(1, len(parts))]
    matches = [
        (by_name[first], by_name[second])
        for first, second in cuts
        if first in by_name and second in by_name
    ]
    if len(matches) > 1:
        raise InvalidValueError(
            f"the name can be cut at more than one {BETWEEN.strip()!r}. Rename the clips"
        )
    return _build_paired_entries(*matches[0]) if matches else None


def _build_paired_entries(first_entry: Entry, second_entry: Entry) -> PairedEntries:
    if first_entry.label is second_entry.label:
        raise InvalidValueError(
            f"both clips are {first_entry.label}. Pair a real clip with a generated one"
        )
    if first_entry.group and second_entry.group and first_entry.group != second_entry.group:
        raise InvalidValueError(
            f"the clips show {first_entry.group!r} and {second_entry.group!r}. Pair clips of one group"
        )
    pair = Pair(
        *(compute_placeholder_clip_id("entry", entry.name) for entry in (first_entry, second_entry))
    )
    real = Position.FIRST if first_entry.label is Label.REAL else Position.SECOND
    return PairedEntries(first=first_entry, second=second_entry, pair=pair, real=real)
