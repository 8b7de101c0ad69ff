"""Exported questions as plain rows, their shared settings, and the scores of replies to them.

The rows and settings have all data for parsing and scoring a reply. This module opens no clip, so
exported tasks run with any version of PyAV, or without PyAV.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Any

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Estimate, Scorecard
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
from unreel.core.judgement import Pair
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Marks
from unreel.core.safe_names import read_clip_id
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.presentation import MIN_PIXELS
from unreel.protocols.protocol import Mode, Protocol, ScoredQuestion, get_protocol

RECIPE_FILE = "unreel.json"
QUESTIONS_FILE = "questions.jsonl"
_TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkExportRecipe:
    """Settings that all questions of an exported benchmark share."""

    name: str
    """Name of the task: letters, digits, `_` and `-`."""
    protocol: str
    prompt: str = "paper"
    mode: Mode = "strict"
    box_space: str | None = None
    """Coordinate space of the reviewer's boxes, required by `trace`: see `unreel.protocols.box_space`."""
    sampling: str | None = "uniform-8"
    """Sampling plan of the frames; `None` exports the whole file, which the model samples."""
    marks: Marks = "default"
    """Rule that determines whether a timestamp precedes each frame."""
    max_pixels: int | None = None
    """Maximum number of pixels; larger frames are scaled down."""
    split: str | None = None
    """Split to export; `None` exports all."""
    seed: int = 0
    """Seed of the order in pairs and of the resampling for intervals."""

    def __post_init__(self) -> None:
        if not _TASK_NAME.fullmatch(self.name):
            raise InvalidSettingError(
                "name", f"cannot name a task {self.name!r}", "Use letters, digits, _ and -"
            )
        self.instrument.prompt(self.prompt)
        if self.max_pixels is not None:
            setting = "max_pixels"
            if self.max_pixels < MIN_PIXELS:
                raise InvalidSettingError(
                    setting,
                    f"cannot show frames of {self.max_pixels} pixels",
                    f"Give {MIN_PIXELS} or more",
                )
            if self.sampling is None:
                raise InvalidSettingError(
                    setting,
                    "the frames of a whole file cannot be scaled down",
                    "Name a sampling plan, or leave it out",
                )
        if self.box_space is not None:
            parse_box_space(self.box_space, width=1, height=1)
        elif self.instrument.needs_box_space:
            raise InvalidSettingError(
                "box_space",
                f"{self.protocol} needs the space of the boxes",
                "Give pixel, unit, permille or 'model-input WxH', as the model answers",
            )

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """Return the protocol at its current version."""
        return get_protocol(self.protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedQuestion:
    """One question with its inputs and ground truth, as a row of JSONL, Parquet or TSV."""

    id: str
    """Name of the clip in its benchmark, or both names of a pair."""
    clips: str
    """Ids of the clips in the order shown, separated by spaces."""
    videos: str
    """JSON list of the clips' paths relative to the media folder."""
    answer: str
    """Ground truth as readable text."""
    truth: str
    """Ground truth for the scorer: a JSON list with one value per scored row."""
    width: int = 0
    """Width of the frame in pixels; 0 if no box is requested."""
    height: int = 0
    source: str = ""
    """Scene that the clips show or were made from; clips of one scene are resampled together."""
    creator: str = ""
    """Creator of the generated clip; "" if all clips are real."""
    difficulty: str = ""
    """Difficulty of the clip according to the benchmark."""

    @property
    def subject(self) -> ClipId | Pair:
        match [read_clip_id(clip, f"question {self.id!a}") for clip in self.clips.split()]:
            case [clip]:
                return clip
            case [first, second]:
                return Pair(first, second)
            case _:
                raise UnreadableSourceError(
                    QUESTIONS_FILE,
                    f"question {self.id!a} shows neither one clip nor two",
                    "Export the benchmark again",
                )

    @property
    def places(self) -> list[str]:
        """Return the paths of the clips below the media directory, in the order shown."""
        return [str(path) for path in json.loads(self.videos)]


def parse_exported_question(row: Mapping[str, Any]) -> ExportedQuestion:
    """Parse an exported question from `row`; columns of other names are ignored."""
    return ExportedQuestion(
        id=str(row["id"]),
        clips=str(row["clips"]),
        videos=str(row["videos"]),
        answer=str(row["answer"]),
        truth=str(row["truth"]),
        width=int(row["width"]),
        height=int(row["height"]),
        source=str(row.get("source", "")),
        creator=str(row.get("creator", "")),
        difficulty=str(row.get("difficulty", "")),
    )


def save_export_recipe(recipe: BenchmarkExportRecipe, folder: Path, *, media: Path) -> None:
    """Write `recipe` and the path of the media folder to `unreel.json` in the export folder."""
    text = {
        "recipe": asdict(recipe),
        "instrument": str(recipe.instrument.instrument),
        "media": str(media.resolve()),
    }
    data = (json.dumps(text, indent=2) + "\n").encode()
    OutputDirectory(folder, published=True).write(RECIPE_FILE, data)


def load_export_recipe(folder: Path) -> tuple[BenchmarkExportRecipe, Path]:
    """Load the recipe of the export in `folder`, and the path of its media folder.

    Raise `UnreadableSourceError` if the recipe is missing, damaged, or of another protocol version.
    """
    path = folder / RECIPE_FILE
    try:
        saved = parse_json_object(read_limited_bytes(path, most=RECIPE_BYTES))
        recipe = TypeAdapter(BenchmarkExportRecipe).validate_python(saved["recipe"])
        written, media = saved["instrument"], Path(saved["media"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSourceError(
            str(path),
            f"not a recipe of an export ({type(error).__name__})",
            "Export the benchmark again",
        ) from error
    current = str(recipe.instrument.instrument)
    if written != current:
        raise UnreadableSourceError(
            str(path),
            f"was exported for {written}, and this release measures {current}",
            "Export the benchmark again",
        )
    return recipe, media


def read_exported_rows(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of an export with all columns; row n, from 1, has the index n - 1."""
    with (folder / QUESTIONS_FILE).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


NO_REPLIES = ("[LMMS_EVAL_REQUEST_FAILED", "Failed to obtain answer via API")
"""Prefixes of the texts of lmms-eval 0.7 and VLMEvalKit for a request without an answer."""

_COUNTS = ("questions", "answered")
_MORE_IS_BETTER = {"more": True, "less": False, "neither": None}


def parse_exported_reply(
    recipe: BenchmarkExportRecipe, question: ExportedQuestion, text: str
) -> Any:
    """Return the parsed verdict of a reply, or a `Failure` for an empty or failed reply."""
    if not text.strip():
        return Failure(FailureReason.EMPTY_REPLY, "the tool passed no text")
    if text.lstrip().startswith(NO_REPLIES):
        return Failure(FailureReason.SERVER_ERROR, text.strip()[:200])
    return parse_answer_text(
        text,
        recipe.instrument,
        prompt=recipe.prompt,
        mode=recipe.mode,
        box_space=recipe.box_space if question.width else None,
        size=(question.width, question.height),
    )


def score_exported_replies(
    recipe: BenchmarkExportRecipe, replies: Iterable[tuple[ExportedQuestion, str | Failure]]
) -> Scorecard:
    """Return the scorecard of `replies`, parsed and scored as by unreel itself."""
    rows = []
    for question, reply in replies:
        outcome = reply
        if isinstance(reply, str):
            outcome = parse_exported_reply(recipe, question, reply)
        rows += [
            ScoredQuestion(
                subject=question.subject,
                truth=truth,
                outcome=outcome,
                source=question.source,
                creator=question.creator,
                difficulty=question.difficulty,
            )
            for truth in parse_truths_json(recipe.protocol, question.truth)
        ]
    return recipe.instrument.score(rows, seed=recipe.seed)


def flatten_scorecard_metrics(scorecard: Scorecard) -> dict[str, float]:
    """Return counts and measured metrics (with interval, n, parse coverage) as numbers by name."""
    values: dict[str, float] = {
        "questions": scorecard.n_questions,
        "answered": scorecard.n_answered,
    }
    values |= {f"failed: {reason}": n for reason, n in scorecard.failures.items()}
    values |= {f"unread: {part}": n for part, n in scorecard.unparsed.items()}
    values |= {f"clips: {what}": n for what, n in scorecard.confusion.items()}
    for metric in scorecard.metrics:
        value = metric.value
        if isinstance(value, Estimate):
            values[metric.name] = value.value
            values[f"{metric.name} (low)"] = value.low
            values[f"{metric.name} (high)"] = value.high
            values[f"{metric.name} (n)"] = value.n
            values[f"{metric.name} (parsed)"] = metric.coverage.parsed
            values[f"{metric.name} (asked)"] = metric.coverage.asked
    return values


def list_exported_task_metrics(name: str) -> Iterator[tuple[str, bool | None]]:
    """Yield the metrics that a task of that protocol reports, and whether more is better (None: neither)."""
    metrics = get_protocol(name).figures
    for metric in metrics.exported:
        yield metric, _MORE_IS_BETTER[metrics[metric].better]
        for part in ("low", "high", "n"):
            yield f"{metric} ({part})", None
    for count in _COUNTS:
        yield count, None


def format_truths_json(name: str, truths: tuple[Any, ...]) -> str:
    """Return the ground truths of one question of the protocol `name` as a JSON list."""
    return _build_truths_adapter(name).dump_json(truths).decode()


def parse_truths_json(name: str, text: str) -> tuple[Any, ...]:
    """Parse the JSON list of `format_truths_json` into ground truths of the protocol `name`."""
    truths: tuple[Any, ...] = _build_truths_adapter(name).validate_json(text)
    return truths


@cache
def _build_truths_adapter(name: str) -> TypeAdapter[Any]:
    many: Any = GenericAlias(tuple, (get_protocol(name).truths.kind, ...))
    return TypeAdapter(many)
