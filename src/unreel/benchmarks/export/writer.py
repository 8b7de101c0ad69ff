"""Writes the questions of a benchmark with the frames that they show: all that another tool needs."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from unreel.benchmarks.entry import REASONS_SHOWN, Rejected
from unreel.benchmarks.export.item import QUESTIONS_FILE, ExportItem, ExportRecipe, save_recipe
from unreel.benchmarks.export.questions import ask_about
from unreel.benchmarks.loader import Benchmark
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.identity import bytes_id
from unreel.core.output_files import OutputDirectory
from unreel.media.reader import MediaReader, SampledFrame
from unreel.protocols.presentation import mark_clip, mark_instant, sample_frames, shows_times

Part = str | SampledFrame | Path
"""A text, a frame, or a whole file."""


def show(
    recipe: ExportRecipe, item: ExportItem, *, media: Path, reader: MediaReader
) -> list[Part] | Failure:
    """Return the parts to show before the prompt, in order; the clips of a pair are numbered."""
    parts: list[Part] = []
    places = item.places
    for number, place in enumerate(places, start=1):
        if len(places) > 1:
            parts.append(mark_clip(number))
        path = media / place
        if recipe.sampling is None:
            parts.append(path)
            continue
        sampled = sample_frames(
            reader, path, sampling=recipe.sampling, max_pixels=recipe.max_pixels
        )
        if isinstance(sampled, Failure):
            return sampled
        for frame in sampled.frames:
            if shows_times(recipe.protocol, recipe.marks):
                parts.append(mark_instant(frame.at_s))
            parts.append(frame)
    return parts


FRAMES: Final = "frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """Result of an export, with the questions that could not be exported."""

    folder: Path
    n_questions: int
    n_rejected: int
    rejected: tuple[Rejected, ...]
    """The first rows that were rejected."""


@dataclass(frozen=True, slots=True)
class _ExportTable:
    item: ExportItem
    parts: list[Part]
    media: Path


def write_questions(
    benchmark: Benchmark, recipe: ExportRecipe, *, folder: Path, reader: MediaReader
) -> ExportResult:
    """Write the questions, their frames and their recipe to `folder`, one clip at a time.

    A clip that cannot be shown is rejected here: no other tool has a word for it.

    Raises:
        UnreadableSourceError: nothing can be asked.
    """
    into = OutputDirectory(folder, published=True)
    n_questions = n_rejected = 0
    rejected: list[Rejected] = []
    prompt = recipe.instrument.prompt(recipe.prompt).text
    with into.create_text(QUESTIONS_FILE) as file:
        for sheet in _iter_export_tables(benchmark, recipe, reader=reader):
            if isinstance(sheet, Rejected):
                n_rejected += 1
                if len(rejected) < REASONS_SHOWN:
                    rejected.append(sheet)
                continue
            shown = json.dumps([_write_part(part, into, sheet.media) for part in sheet.parts])
            row = {"index": n_questions, "question": prompt, **asdict(sheet.item), "shown": shown}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            n_questions += 1
    if not n_questions:
        why = f", first: {rejected[0]}" if rejected else ""
        problem = f"no question for {recipe.protocol} ({n_rejected} rows rejected{why})"
        remedy = "Check the protocol and the split"
        raise UnreadableSourceError(str(benchmark.root), problem, remedy)
    save_recipe(recipe, folder, media=benchmark.root)
    return ExportResult(
        folder=folder, n_questions=n_questions, n_rejected=n_rejected, rejected=tuple(rejected)
    )


def _iter_export_tables(
    benchmark: Benchmark, recipe: ExportRecipe, *, reader: MediaReader
) -> Iterator[_ExportTable | Rejected]:
    for question in ask_about(benchmark, recipe, reader=reader):
        if isinstance(question, Rejected):
            yield question
            continue
        parts = show(recipe, question, media=benchmark.root, reader=reader)
        if isinstance(parts, Failure):
            yield Rejected(question.id, str(parts))
        else:
            yield _ExportTable(question, parts, benchmark.root)


def _write_part(part: Part, folder: OutputDirectory, media: Path) -> dict[str, str]:
    match part:
        case str():
            return {"text": part}
        case Path():
            return {"video": part.relative_to(media).as_posix()}
        case SampledFrame():
            # Named by its bytes: a clip that is shown in several pairs is written once.
            name = bytes_id(part.data)
            place = f"{FRAMES}/{name[:2]}/{name}.jpg"
            folder.write(place, part.data)
            return {"image": place}
