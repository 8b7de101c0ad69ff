"""From the entries of a benchmark to the questions of one export, about files on this machine."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.export.item import ExportItem, ExportRecipe
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import (
    PlannedQuestion,
    ProbedEntry,
    QuestionScope,
    UnreadableClip,
    plan_questions,
)
from unreel.benchmarks.truth import write_truths
from unreel.core.clip import ClipId, get_creator
from unreel.core.errors import MediaError
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.question import Condition
from unreel.media.reader import MediaReader
from unreel.media.sampling import parse_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalClip:
    """A clip that the other tool opens; its properties are read only if the ground truth needs them."""

    id: ClipId
    location: str
    facts: ClipFacts | None = None
    width: int = 0
    height: int = 0


def ask_about(
    benchmark: Benchmark, recipe: ExportRecipe, *, reader: MediaReader
) -> Iterator[ExportItem | Rejected]:
    """Yield one item per question of `recipe`, in benchmark order, and the rejected rows.

    Frame size and duration come from the benchmark, or from the file if the benchmark does not
    declare them. `preference` asks about each generated clip next to the real clip of its group;
    the other protocols ask about each clip.
    """
    if recipe.sampling is not None:
        parse_plan(recipe.sampling)
    scope = QuestionScope(
        instrument=recipe.instrument.instrument,
        conditions=(Condition(prompt=recipe.prompt, marks=recipe.marks),),
        seed=recipe.seed,
    )
    for planned in plan_questions(_iter_local_entries(benchmark, recipe, reader), scope):
        match planned:
            case PlannedQuestion():
                yield _build_export_item(planned, recipe)
            case UnreadableClip(name=name, failure=failure):
                yield Rejected(name, str(failure))
            case Rejected():
                yield planned


def _iter_local_entries(
    benchmark: Benchmark, recipe: ExportRecipe, reader: MediaReader
) -> Iterator[ProbedEntry[_LocalClip] | Rejected]:
    for row in benchmark:
        if isinstance(row, Rejected):
            yield row
        elif recipe.split in {None, row.split}:
            clip = _identify_local_clip(row, benchmark.root)
            if not isinstance(clip, Rejected) and recipe.instrument.needs_facts:
                yield ProbedEntry(
                    entry=row, clip=_measure_frame_size(clip, row, benchmark.root, reader)
                )
            else:
                yield clip if isinstance(clip, Rejected) else ProbedEntry(entry=row, clip=clip)


def _identify_local_clip(entry: Entry, root: Path) -> _LocalClip | Rejected:
    """Find the file of `entry`; reject a file that is not on this machine.

    The other tools need paths.
    """
    if is_url(entry.location):
        return Rejected(entry.name, "it is a URL. Download the clips, then export the folder")
    path = root / entry.location
    if not path.is_file():
        return Rejected(entry.name, f"no file at {entry.location}")
    try:
        return _LocalClip(id=clip_id(path), location=entry.location)
    except (MediaError, OSError) as error:
        return Rejected(entry.name, str(error))


def _measure_frame_size(
    clip: _LocalClip, entry: Entry, root: Path, reader: MediaReader
) -> _LocalClip | Failure:
    """Return `clip` with its frame size; the file is opened if the benchmark lacks it."""
    declared = entry.facts
    if declared.width and declared.height and declared.duration_us:
        return replace(clip, width=declared.width, height=declared.height)
    facts = reader.probe(root / clip.location)
    if isinstance(facts, Failure):
        return facts
    width, height = declared.width or facts.video.width, declared.height or facts.video.height
    return replace(clip, facts=facts, width=width, height=height)


def _build_export_item(planned: PlannedQuestion[_LocalClip], recipe: ExportRecipe) -> ExportItem:
    first = planned.clips[0]
    return ExportItem(
        id=planned.name,
        clips=" ".join(clip.id for clip in planned.clips),
        videos=json.dumps([clip.location for clip in planned.clips]),
        answer=recipe.instrument.wording.right(planned.truths[0]),
        truth=write_truths(recipe.protocol, planned.truths),
        width=first.width,
        height=first.height,
        source=planned.source,
        creator=get_creator(*planned.origins),
        difficulty=planned.difficulty,
    )
