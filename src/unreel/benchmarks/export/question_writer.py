"""Writer of the questions of an exported benchmark, with the frames that they show."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected
from unreel.benchmarks.export.exported_question import (
    QUESTIONS_FILE,
    BenchmarkExportRecipe,
    ExportedQuestion,
    format_truths_json,
    save_export_recipe,
)
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.questions import (
    PlannedQuestion,
    ProbedEntry,
    QuestionScope,
    UnreadableClip,
    plan_questions,
)
from unreel.core.clip import ClipFacts, ClipId, get_first_creator
from unreel.core.content_ids import compute_bytes_clip_id, compute_clip_id
from unreel.core.errors import MediaError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition
from unreel.media.reader import MediaReader, SampledFrame
from unreel.media.sampling import parse_sampling
from unreel.protocols.presentation import (
    format_frame_time,
    format_question_clip_heading,
    sample_shown_frames,
    shows_frame_times,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalClip:
    """A benchmark clip with a local file; its properties are read only if the ground truth needs them."""

    id: ClipId
    location: str
    facts: ClipFacts | None = None
    width: int = 0
    height: int = 0


def iter_exported_questions(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, *, reader: MediaReader
) -> Iterator[ExportedQuestion | Rejected]:
    """Yield each question of `benchmark` with the settings `recipe`, in order, and the rejected rows.

    Frame size and duration come from the benchmark, or from the file if the benchmark does not
    declare them. `preference` asks about each generated clip next to the real clip of its group;
    the other protocols ask about each clip.
    """
    if recipe.sampling is not None:
        parse_sampling(recipe.sampling)
    scope = QuestionScope(
        instrument=recipe.instrument.instrument,
        conditions=(Condition(prompt=recipe.prompt, marks=recipe.marks),),
        seed=recipe.seed,
    )
    for planned in plan_questions(_iter_local_entries(benchmark, recipe, reader), scope):
        match planned:
            case PlannedQuestion():
                first = planned.clips[0]
                yield ExportedQuestion(
                    id=planned.name,
                    clips=" ".join(clip.id for clip in planned.clips),
                    videos=json.dumps([clip.location for clip in planned.clips]),
                    answer=recipe.instrument.wording.right(planned.truths[0]),
                    truth=format_truths_json(recipe.protocol, planned.truths),
                    width=first.width,
                    height=first.height,
                    source=planned.source,
                    creator=get_first_creator(*planned.origins),
                    difficulty=planned.difficulty,
                )
            case UnreadableClip(name=name, failure=failure):
                yield Rejected(name, str(failure))
            case Rejected():
                yield planned


def _iter_local_entries(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, reader: MediaReader
) -> Iterator[ProbedEntry[_LocalClip] | Rejected]:
    for row in benchmark:
        if isinstance(row, Rejected):
            yield row
        elif recipe.split in {None, row.split}:
            clip = _identify_local_clip(row, benchmark.root)
            if not isinstance(clip, Rejected) and recipe.instrument.needs_facts:
                sized = _measure_frame_size(clip, row, benchmark.root, reader)
                yield ProbedEntry(entry=row, clip=sized)
            else:
                yield clip if isinstance(clip, Rejected) else ProbedEntry(entry=row, clip=clip)


def _identify_local_clip(entry: Entry, root: Path) -> _LocalClip | Rejected:
    """Return the clip of `entry` with its id; a clip without a local file is rejected."""
    if is_url(entry.location):
        return Rejected(entry.name, "the clip is a URL. Download the clips, then export the folder")
    path = root / entry.location
    if not path.is_file():
        return Rejected(entry.name, f"no file at {entry.location}")
    try:
        return _LocalClip(id=compute_clip_id(path), location=entry.location)
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


Part = str | SampledFrame | Path
"""Part of a message: a text, a frame, or a whole file."""


def build_question_media_parts(
    recipe: BenchmarkExportRecipe, question: ExportedQuestion, *, media: Path, reader: MediaReader
) -> list[Part] | Failure:
    """Return captioned frames or files of a question, before the prompt; a failure if undecodable."""
    parts: list[Part] = []
    paths = question.places
    for number, relative in enumerate(paths, start=1):
        if len(paths) > 1:
            parts.append(format_question_clip_heading(number))
        path = media / relative
        if recipe.sampling is None:
            parts.append(path)
            continue
        sampled = sample_shown_frames(
            reader, path, sampling=recipe.sampling, max_pixels=recipe.max_pixels
        )
        if isinstance(sampled, Failure):
            return sampled
        for frame in sampled.frames:
            if shows_frame_times(recipe.protocol, recipe.marks):
                parts.append(format_frame_time(frame.at_s))
            parts.append(frame)
    return parts


FRAMES = "frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkExportResult:
    """Result of the export of a benchmark: the folder, and counts of written and rejected questions."""

    folder: Path
    n_questions: int
    n_rejected: int
    rejected: tuple[Rejected, ...]
    """First rejected rows."""


def write_exported_questions(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, *, folder: Path, reader: MediaReader
) -> BenchmarkExportResult:
    """Write the questions, their frames and the settings in `recipe` to `folder`, one clip at a time.

    A clip that cannot be decoded is rejected, because other evaluation tools cannot represent a
    failure. Raise `UnreadableSourceError` if no question can be built from the benchmark.
    """
    into = OutputDirectory(folder, published=True)
    n_questions = n_rejected = 0
    rejected: list[Rejected] = []
    prompt = recipe.instrument.prompt(recipe.prompt).text
    with into.create_text(QUESTIONS_FILE) as file:
        for question in iter_exported_questions(benchmark, recipe, reader=reader):
            refused = question if isinstance(question, Rejected) else None
            if isinstance(question, ExportedQuestion):
                root = benchmark.root
                parts = build_question_media_parts(recipe, question, media=root, reader=reader)
                if isinstance(parts, Failure):
                    refused = Rejected(question.id, str(parts))
                else:
                    shown = json.dumps([_write_question_part(p, into, root) for p in parts])
                    row = {"index": n_questions, "question": prompt, **asdict(question)}
                    file.write(json.dumps(row | {"shown": shown}, ensure_ascii=False) + "\n")
                    n_questions += 1
            if refused is not None:
                n_rejected += 1
                if len(rejected) < REASONS_SHOWN:
                    rejected.append(refused)
    if not n_questions:
        reason = f", first: {rejected[0]}" if rejected else ""
        raise UnreadableSourceError(
            str(benchmark.root),
            f"no question for {recipe.protocol} ({n_rejected} rows rejected{reason})",
            "Check the protocol and the split",
        )
    save_export_recipe(recipe, folder, media=benchmark.root)
    return BenchmarkExportResult(
        folder=folder, n_questions=n_questions, n_rejected=n_rejected, rejected=tuple(rejected)
    )


def _write_question_part(part: Part, directory: OutputDirectory, media: Path) -> dict[str, str]:
    match part:
        case str():
            return {"text": part}
        case Path():
            return {"video": part.relative_to(media).as_posix()}
        case SampledFrame():
            # The name is the id of the bytes, so a clip of several pairs is written once.
            name = compute_bytes_clip_id(part.data)
            path = f"{FRAMES}/{name[:2]}/{name}.jpg"
            directory.write(path, part.data)
            return {"image": path}
