"""From the groups of a benchmark to pairs of a real clip and a generated one."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.export.item import Item, Recipe, write_truths
from unreel.core.clip import ClipId
from unreel.core.identity import clip_id
from unreel.core.judgement import Label
from unreel.core.verdict import Position
from unreel.protocols.preference.order import Shown, balance_order

Question = Item | Rejected


def ask_pairs(rows: Iterable[Row], recipe: Recipe, *, root: Path) -> Iterator[Question]:
    """A question for each generated clip beside the real clip of its group; half show that one first."""
    clips: dict[ClipId, Entry] = {}
    pairs: list[tuple[ClipId, ClipId]] = []
    for couple in _couples(rows):
        if isinstance(couple, Rejected):
            yield couple
            continue
        real, generated = (_known(entry, root, clips) for entry in couple)
        if isinstance(real, Rejected):
            yield real
        elif isinstance(generated, Rejected):
            yield generated
        else:
            pairs.append((real, generated))
    for shown in balance_order(pairs, seed=recipe.seed):
        yield _item(shown, recipe, clips)


def file_of(entry: Entry, root: Path) -> Path | Rejected:
    """The file of `entry`, which must lie on this machine: the other tools take paths."""
    if is_url(entry.location):
        return Rejected(entry.name, "it is a URL. Download the clips, then export the folder")
    path = root / entry.location
    return path if path.is_file() else Rejected(entry.name, f"no file at {entry.location}")


def _couples(rows: Iterable[Row]) -> Iterator[tuple[Entry, Entry] | Rejected]:
    real: dict[str, Entry] = {}
    generated: list[Entry] = []
    for row in rows:
        if isinstance(row, Rejected):
            yield row
        elif not row.group:
            yield Rejected(row.name, "it belongs to no group, so that nothing pairs with it")
        elif row.label is Label.GENERATED:
            generated.append(row)
        elif row.group in real:
            yield Rejected(row.name, f"group {row.group!r} has a real clip already")
        else:
            real[row.group] = row
    for entry in generated:
        if entry.group in real:
            yield real[entry.group], entry
        else:
            yield Rejected(entry.name, f"group {entry.group!r} has no real clip to pair with")


def _known(entry: Entry, root: Path, clips: dict[ClipId, Entry]) -> ClipId | Rejected:
    path = file_of(entry, root)
    if isinstance(path, Rejected):
        return path
    clip = clip_id(path)
    known = clips.setdefault(clip, entry)
    if known.label is not entry.label:
        return Rejected(entry.name, f"its file equals that of {known.name!r} on the other side")
    return clip


def _item(shown: Shown, recipe: Recipe, clips: dict[ClipId, Entry]) -> Item:
    ids = (shown.pair.first, shown.pair.second)
    entries = [clips[clip] for clip in ids]
    return Item(
        id=" | ".join(entry.name for entry in entries),
        clips=" ".join(ids),
        videos=json.dumps([entry.location for entry in entries]),
        answer="1" if shown.real is Position.FIRST else "2",
        truth=write_truths(recipe, (shown.real,)),
    )
