"""From the entries of a benchmark to the questions of one protocol."""

import json
from collections.abc import Iterator
from pathlib import Path

from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.export.item import Item, Recipe, write_truths
from unreel.benchmarks.export.pairs import Question, ask_pairs, file_of
from unreel.benchmarks.opening import Benchmark
from unreel.benchmarks.truth import truths_of
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.judgement import Label
from unreel.core.span import to_us
from unreel.media.reader import MediaReader
from unreel.media.sampling import parse_plan


def ask_about(benchmark: Benchmark, recipe: Recipe, *, reader: MediaReader) -> Iterator[Question]:
    """One item for each question of `recipe`, in the benchmark's order, and what cannot be asked.

    The size of the frame and the duration are those that the benchmark declares, else the file's.
    `preference` asks about each generated clip beside the real clip of its group; the other protocols
    ask about each clip.
    """
    if recipe.sampling is not None:
        parse_plan(recipe.sampling)
    rows = (row for row in benchmark if _is_asked(row, recipe))
    if recipe.protocol == "preference":
        yield from ask_pairs(rows, recipe, root=benchmark.root)
        return
    for row in rows:
        yield row if isinstance(row, Rejected) else _ask(row, recipe, benchmark.root, reader)


def _is_asked(row: Row, recipe: Recipe) -> bool:
    return isinstance(row, Rejected) or recipe.split in {None, row.split}


def _ask(entry: Entry, recipe: Recipe, root: Path, reader: MediaReader) -> Question:
    path = file_of(entry, root)
    if isinstance(path, Rejected):
        return path
    width = height = duration_us = 0
    try:
        if recipe.protocol == "trace":
            width, height, duration_us = _frame_and_duration(entry, path, reader)
        truths = truths_of(entry, recipe.protocol, duration_us=duration_us)
    except InvalidValueError as error:
        return Rejected(entry.name, str(error))
    return Item(
        id=entry.name,
        clips=clip_id(path),
        videos=json.dumps([entry.location]),
        answer=_readable(entry, recipe),
        truth=write_truths(recipe, truths),
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


def _readable(entry: Entry, recipe: Recipe) -> str:
    if recipe.protocol == "realism" and entry.rating is not None:
        return str(entry.rating.score)
    if recipe.protocol == "reality":
        return "1" if entry.label is Label.REAL else "0"
    return "REAL" if entry.label is Label.REAL else "FAKE"
