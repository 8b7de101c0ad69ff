"""Questions as plain rows, with their shared recipe: all data for parsing and scoring an answer.

This module opens no clip, so exported tasks run with any version of PyAV, or without PyAV.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.benchmarks import truth
from unreel.core.clip import ClipId
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.judgement import Pair
from unreel.core.names import read_clip_id
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Marks
from unreel.core.small_documents import RECIPE_BYTES, parse_object, read_bytes
from unreel.protocols.presentation import LEAST_PIXELS
from unreel.protocols.protocol import Mode, Protocol, get_protocol
from unreel.protocols.space import declare_space

RECIPE_FILE: Final = "unreel.json"
QUESTIONS_FILE: Final = "questions.jsonl"
_TASK_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecipe:
    """Settings that all questions of an export share."""

    name: str
    """Of the task: letters, digits, `_` and `-`."""
    protocol: str
    prompt: str = "paper"
    mode: Mode = "strict"
    box_space: str | None = None
    """The space of the reviewer's boxes: `trace` needs it, see `unreel.protocols.space`."""
    sampling: str | None = "uniform-8"
    """Plan of the frames that are shown; `None` hands over the file, and the model samples it."""
    marks: Marks = "default"
    """Whether each frame follows its timestamp."""
    max_pixels: int | None = None
    """Frames with more pixels than this are scaled down to it before they are shown."""
    split: str | None = None
    """The split to ask about; `None` takes all."""
    seed: int = 0
    """Decides the order in pairs and the draws of every interval."""

    def __post_init__(self) -> None:
        if not _TASK_NAME.fullmatch(self.name):
            setting, problem = "name", f"cannot name a task {self.name!r}"
            raise InvalidSettingError(setting, problem, "Use letters, digits, _ and -")
        self.instrument.prompt(self.prompt)
        if self.max_pixels is not None:
            self._require_pixels(self.max_pixels)
        if self.box_space is not None:
            declare_space(self.box_space, width=1, height=1)
        elif self.instrument.needs_box_space:
            setting, problem = "box_space", f"{self.protocol} needs the space of the boxes"
            remedy = "Give pixel, unit, permille or 'model-input WxH', as the model answers"
            raise InvalidSettingError(setting, problem, remedy)

    def _require_pixels(self, most: int) -> None:
        setting = "max_pixels"
        if most < LEAST_PIXELS:
            problem, remedy = f"cannot show frames of {most} pixels", f"Give {LEAST_PIXELS} or more"
            raise InvalidSettingError(setting, problem, remedy)
        if self.sampling is None:
            problem = "the frames of a whole file cannot be scaled down"
            raise InvalidSettingError(setting, problem, "Name a sampling plan, or leave it out")

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """Return the protocol at its current version."""
        return get_protocol(self.protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportItem:
    """One question with its inputs and ground truth, as a row of JSONL, Parquet or TSV."""

    id: str
    """Name of the clip in its benchmark, or both names of a pair."""
    clips: str
    """Ids of the clips shown, in order, with a space between."""
    videos: str
    """A JSON list of their paths below the media folder."""
    answer: str
    """The truth for people to read."""
    truth: str
    """The truth for the scorer: a JSON list with one value for each row that it scores."""
    width: int = 0
    """Of the frame in pixels; 0 where no box is asked for."""
    height: int = 0
    source: str = ""
    """The scene that the clips show or were made from; clips of one are drawn together."""
    creator: str = ""
    """Who made the generated clip; "" where all are real."""
    difficulty: str = ""
    """How hard the benchmark's makers hold the clip to be."""

    @property
    def subject(self) -> ClipId | Pair:
        """Return the clip or pair of the question."""
        match [read_clip_id(clip, f"question {self.id!a}") for clip in self.clips.split()]:
            case [clip]:
                return clip
            case [first, second]:
                return Pair(first, second)
            case _:
                problem = f"question {self.id!a} shows neither one clip nor two"
                raise UnreadableSourceError(QUESTIONS_FILE, problem, "Export the benchmark again")

    @property
    def places(self) -> list[str]:
        """Return the paths of the clips below the media directory, in the order shown."""
        return [str(place) for place in json.loads(self.videos)]


def parse_export_item(row: Mapping[str, Any]) -> ExportItem:
    """Parse an export item from `row`; other columns are ignored."""
    return ExportItem(
        id=str(row["id"]),
        clips=str(row["clips"]),
        videos=str(row["videos"]),
        answer=str(row["answer"]),
        truth=str(row["truth"]),
        width=int(row["width"]),
        height=int(row["height"]),
        source=str(row.get("source", "")),  # exports of earlier releases do not tell
        creator=str(row.get("creator", "")),
        difficulty=str(row.get("difficulty", "")),
    )


def read_truths(recipe: ExportRecipe, item: ExportItem) -> tuple[Any, ...]:
    """Return the ground truths of `item` in the form that the protocol's scorer needs."""
    return truth.read_truths(recipe.protocol, item.truth)


def save_recipe(recipe: ExportRecipe, folder: Path, *, media: Path) -> None:
    """Write `recipe` next to the questions, with the folder that the paths of clips start from."""
    text = {
        "recipe": asdict(recipe),
        "instrument": str(recipe.instrument.instrument),
        "media": str(media.resolve()),
    }
    data = (json.dumps(text, indent=2) + "\n").encode()
    OutputDirectory(folder, published=True).write(RECIPE_FILE, data)


@dataclass(frozen=True, slots=True)
class SavedRecipe:
    """An exported recipe, and the directory of its clips."""

    recipe: ExportRecipe
    media: Path


def load_recipe(folder: Path) -> SavedRecipe:
    """Load the recipe of an exported folder; another version of the protocol is rejected."""
    path = folder / RECIPE_FILE
    try:
        saved = parse_object(read_bytes(path, most=RECIPE_BYTES))
        recipe = TypeAdapter(ExportRecipe).validate_python(saved["recipe"])
        written, media = saved["instrument"], Path(saved["media"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        problem = f"no recipe of an export ({type(error).__name__})"
        raise UnreadableSourceError(str(path), problem, "Export the benchmark again") from error
    current = str(recipe.instrument.instrument)
    if written != current:
        problem = f"was exported for {written}, and this release measures {current}"
        raise UnreadableSourceError(str(path), problem, "Export the benchmark again")
    return SavedRecipe(recipe, media)


def read_rows(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the questions of an export directory with all columns; question n has the index n - 1."""
    with (folder / QUESTIONS_FILE).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
