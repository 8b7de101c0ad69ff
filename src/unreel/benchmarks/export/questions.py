"""From the entries of a benchmark to the questions of one protocol."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.export.item import ExportRecipe, Item, write_truths
from unreel.benchmarks.opening import Benchmark
from unreel.benchmarks.pairing import PairedEntries, pair_entries
from unreel.benchmarks.truth import truths_of
from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.judgement import Label
from unreel.core.span import to_us
from unreel.core.verdict import Position
from unreel.media.reader import MediaReader
from unreel.media.sampling import parse_plan

Question = Item | Rejected


def ask_about(
    benchmark: Benchmark, recipe: ExportRecipe, *, reader: MediaReader
) -> Iterator[Question]:
    """One item for each question of `recipe`, in the benchmark's order, and what cannot be asked.

    The size of the frame and the duration are those that the benchmark declares, else the file's.
    `preference` asks about each generated clip beside the real clip of its group; the other protocols
    ask about each clip.
    """
    if recipe.sampling is not None:
        parse_plan(recipe.sampling)
    rows = (row for row in benchmark if _is_asked(row, recipe))
    if recipe.protocol == "preference":
        yield from _ask_pairs(rows, recipe, benchmark.root)
        return
    for row in rows:
        yield row if isinstance(row, Rejected) else _ask(row, recipe, benchmark.root, reader)


def _is_asked(row: Row, recipe: ExportRecipe) -> bool:
    return isinstance(row, Rejected) or recipe.split in {None, row.split}


def _file_of(entry: Entry, root: Path) -> Path | Rejected:
    """The file of `entry`, which must lie on this machine: the other tools take paths."""
    if is_url(entry.location):
        return Rejected(entry.name, "it is a URL. Download the clips, then export the folder")
    path = root / entry.location
    return path if path.is_file() else Rejected(entry.name, f"no file at {entry.location}")


def _ask_pairs(rows: Iterable[Row], recipe: ExportRecipe, root: Path) -> Iterator[Question]:
    unusable: list[Rejected] = []
    for paired in pair_entries(_known(rows, root, unusable), seed=recipe.seed):
        yield paired if isinstance(paired, Rejected) else _pair_item(paired, recipe)
    yield from unusable


def _known(
    rows: Iterable[Row], root: Path, unusable: list[Rejected]
) -> Iterator[tuple[Entry, ClipId]]:
    for row in rows:
        path = row if isinstance(row, Rejected) else _file_of(row, root)
        if isinstance(row, Entry) and isinstance(path, Path):
            clip = _identify(row, path)
            if isinstance(clip, Rejected):
                unusable.append(clip)
            else:
                yield row, clip
        elif isinstance(path, Rejected):
            unusable.append(path)


def _identify(entry: Entry, path: Path) -> ClipId | Rejected:
    try:
        return clip_id(path)
    except (MediaError, OSError) as error:
        return Rejected(entry.name, str(error))


def _pair_item(paired: PairedEntries, recipe: ExportRecipe) -> Item:
    return Item(
        id=paired.name,
        clips=f"{paired.pair.first} {paired.pair.second}",
        videos=json.dumps([paired.first.location, paired.second.location]),
        answer="1" if paired.real is Position.FIRST else "2",
        truth=write_truths(recipe.protocol, (paired.real,)),
    )


def _ask(entry: Entry, recipe: ExportRecipe, root: Path, reader: MediaReader) -> Question:
    path = _file_of(entry, root)
    if isinstance(path, Rejected):
        return path
    clip = _identify(entry, path)
    if isinstance(clip, Rejected):
        return clip
    width = height = duration_us = 0
    try:
        if recipe.protocol == "trace":
            width, height, duration_us = _frame_and_duration(entry, path, reader)
        truths = truths_of(entry, recipe.protocol, duration_us=duration_us)
    except InvalidValueError as error:
        return Rejected(entry.name, str(error))
    return Item(
        id=entry.name,
        clips=clip,
        videos=json.dumps([entry.location]),
        answer=_readable(entry, recipe),
        truth=write_truths(recipe.protocol, truths),
        width=width,
        height=height,
    )


def _frame_and_duration(entry: Entry, path: Path, reader: MediaReader) -> tuple[int, int, int]:
    declared = entry.facts
    if declared.width and declared.height and declared.duration_us:
        return declared.width, declared.height, declared.duration_us
    facts = reader.probe(path)
    if isinstance(facts, Failure):
        raise InvalidValueError(str(facts))
    video = facts.video
    return (
        declared.width or video.width,
        declared.height or video.height,
        declared.duration_us or to_us(video.duration_s),
    )


def _readable(entry: Entry, recipe: ExportRecipe) -> str:
    if recipe.protocol == "realism" and entry.rating is not None:
        return str(entry.rating.score)
    if recipe.protocol == "reality":
        return "1" if entry.label is Label.REAL else "0"
    return "REAL" if entry.label is Label.REAL else "FAKE"
