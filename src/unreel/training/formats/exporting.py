"""Export of examples to a directory for another trainer: rows, media, settings and differences."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

from unreel.benchmarks.entry import REASONS_SHOWN, Rejected
from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.ask import ClipInputLoader
from unreel.reviewers.contract import ClipInput, ShownFrame, WholeClip
from unreel.reviewers.endpoint.model_families import format_box_space, get_model_family
from unreel.reviewers.local.input_format import write_checkpoint_input_spec
from unreel.reviewers.message_parts import (
    ClipFilePart,
    ImagePart,
    Part,
    VideoPart,
    build_message_parts,
)
from unreel.reviewers.message_parts import Showing as Form
from unreel.training.examples.example import SEEN, TrainingExample, build_training_example_input
from unreel.training.formats.contract import (
    HELD_OUT,
    TRAIN,
    Keeping,
    MediaFilePaths,
    Shape,
    TrainerConversation,
    TrainerExportFormat,
    TrainerExportJob,
    build_trainer_conversation,
    require_trainer_support,
)
from unreel.training.formats.shared_settings import get_token_side_pixels

MANIFEST: Final = "unreel-export.json"
ROWS: Final = "rows.jsonl"
_MEDIA: Final = "media"
_ROOM: Final = 1.25
"""Safety factor of the maximum text length, because the trainer may count more tokens than the estimate."""
_ROUND: Final = 256
_FORMS: Final[Mapping[Shape, Form]] = {"pictures": "frames", "film": "video", "file": "clip"}
_NO_BYTES: Final = WholeClip(b"", "application/octet-stream")
"""Placeholder for the content of a clip file, which is linked or copied without being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleExportResult:
    """Result of an export to another trainer, with the examples that could not be written."""

    folder: Path
    trainer: str
    n_train: int
    n_held_out: int
    sampling: str
    differences: tuple[str, ...]
    left_out: Mapping[str, int]
    """Number of rows that could not be written, by reason."""
    first: tuple[Rejected, ...]
    command: str


def export_training_examples(
    order: TrainerExportJob,
    parts: Mapping[str, Sequence[TrainingExample]],
    form: TrainerExportFormat,
    *,
    folder: Path,
    showing: ClipInputLoader,
) -> ExampleExportResult:
    """Write training examples to the new `folder` in the format `form` of another trainer.

    Args:
        order: Settings of the export.
        parts: Examples of each part, `train` and `held_out`.
        form: Format of the other trainer.
        folder: Folder of the export.
        showing: Loader of clip inputs.

    Raises:
        InvalidSettingError: The trainer does not support the settings of the recipe.
        UnreadableSourceError: No example could be written.
    """
    require_trainer_support(form, order)
    form.files(
        order, {TRAIN: ()}, _ROUND
    )  # raises for unsupported settings before clips are decoded
    into = OutputDirectory(folder, published=True)
    desk = _ConversationBuilder(
        order, form, showing, _ExportMediaWriter(into, showing, order.keeping)
    )
    rows: dict[str, list[Mapping[str, Any]]] = {TRAIN: [], HELD_OUT: []}
    reasons: Counter[str] = Counter()
    first: list[Rejected] = []
    longest = _ROUND
    with into.create_text(ROWS) as log:
        for part, examples in parts.items():
            for example in examples:
                written = desk.write(example)
                if isinstance(written, Failure):
                    reasons[str(written).partition(". ")[0]] += 1
                    if len(first) < REASONS_SHOWN:
                        first.append(Rejected(example.name, str(written)))
                    continue
                rows[part].append(form.row(written))
                longest = max(longest, desk.tokens(written))
                log.write(json.dumps(desk.tell(part, written), ensure_ascii=False) + "\n")
    if not rows[TRAIN]:
        problem = f"no example could be written for {form.name}"
        remedy = f"The first is {first[0]}" if first else "Check the data"
        raise UnreadableSourceError(str(folder), problem, remedy)
    rows = {part: items for part, items in rows.items() if items}
    for name, text in form.files(order, rows, _round_up_max_length(longest)).items():
        into.write(name, text.encode())
    # Copied to the trained checkpoint, it lets `local/PATH` use the same input format.
    write_checkpoint_input_spec(order.recipe.taught, folder)
    exported = ExampleExportResult(
        folder=folder,
        trainer=form.name,
        n_train=len(rows[TRAIN]),
        n_held_out=len(rows.get(HELD_OUT, ())),
        sampling=form.sampling(order),
        differences=(*_list_export_differences(order), *form.differences(order)),
        left_out=dict(reasons),
        first=tuple(first),
        command=form.command(order),
    )
    into.write(MANIFEST, _format_manifest_json(order, form, exported).encode())
    return exported


class _ExportMediaWriter:
    """Writer of media files to the export folder; each clip or frame is written once."""

    def __init__(self, into: OutputDirectory, showing: ClipInputLoader, keeping: Keeping) -> None:
        self._into, self._showing, self._keeping = into, showing, keeping
        self._there: dict[str, str] = {}

    def put_file(self, clip: Clip) -> str:
        """Link or copy the clip's file into the export folder unchanged, and return its path there."""
        name = f"{_MEDIA}/{clip.id[:16]}{_get_file_suffix(clip)}"
        if clip.id not in self._there:
            with self._showing.open_file(clip.location) as file:
                if self._keeping == "link" and "://" not in clip.location:
                    self._into.link(file.resolve(), name)
                else:
                    self._into.copy(file, name)
            self._there[clip.id] = name
        return self._there[clip.id]

    def put_frame(self, clip: Clip, frame: ShownFrame) -> str:
        """Write the unchanged JPEG of a frame to the export folder, and return its path there."""
        mark = digest("shown frame", clip.id, str(frame.index), str(frame.width), str(frame.height))
        if mark not in self._there:
            size = f"{frame.width}x{frame.height}"
            name = f"{_MEDIA}/{clip.id[:16]}-{size}/{frame.index:06d}.jpg"
            self._into.write(name, frame.jpeg)
            self._there[mark] = name
        return self._there[mark]


class _ConversationBuilder:
    """Builder of conversations from training examples, with boxes as after the trainer's resize."""

    def __init__(
        self,
        order: TrainerExportJob,
        form: TrainerExportFormat,
        showing: ClipInputLoader,
        media: _ExportMediaWriter,
    ) -> None:
        self._order, self._form, self._showing, self._media = order, form, showing, media
        self._boxes = get_model_family(order.recipe.model.family).boxes

    def write(self, example: TrainingExample) -> TrainerConversation | Failure:
        exhibits = self._exhibits(example)
        if isinstance(exhibits, Failure):
            return exhibits
        lesson = build_training_example_input(example, exhibits, self)
        if isinstance(lesson, Failure):
            return lesson
        shape = self._order.shape
        parts = build_message_parts(lesson.sheet, form=_FORMS[shape], times="seconds")
        if isinstance(parts, Failure):
            return parts
        return build_trainer_conversation(lesson, parts, list(self._put(parts, exhibits)))

    def tell(self, part: str, written: TrainerConversation) -> dict[str, Any]:
        """Return the log record of an exported row, with all that is needed to parse its answer."""
        example = written.lesson.example
        record: dict[str, Any] = {
            "part": part,
            "key": example.key,
            "name": example.name,
            "clips": list(example.question.shown),
            "box_space": written.lesson.box_space,
            "prompt": example.question.condition.prompt,
            "answer": written.answer,
        }
        if written.instants:
            record["instants_s"] = [round(float(at), 6) for at in written.instants]
            record["off_the_beat_s"] = round(self._skew(written), 6)
        return record

    def tokens(self, written: TrainerConversation) -> int:
        """Estimate an upper bound of the tokens of the row's text and frames."""
        exhibit = written.lesson.sheet.exhibits[0]
        wide, high = self._form.seen(self._order, *exhibit.shown_size)
        pace = self._order.pace
        n_frames = len(written.instants)
        if not n_frames and pace is not None:
            seconds = sum(float(c.facts.video.duration_s) for c in written.lesson.example.clips)
            n_frames = min(pace.at_most, int(seconds * pace.fps) + 2)
        unit = get_token_side_pixels(self._order.recipe.model.family)
        n_tokens = n_frames * (-(-wide // unit) * -(-high // unit) + 2)
        return n_tokens + len(written.asked) + len(written.answer)

    def _exhibits(self, example: TrainingExample) -> tuple[ClipInput, ...] | Failure:
        if self._order.shape == "file":
            return tuple(ClipInput(clip=clip, whole=_NO_BYTES) for clip in example.clips)
        return self._showing.show(example.clips, example.question.condition, SEEN)

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes after the trainer's resize of `exhibit`."""
        size = exhibit.shown_size
        return format_box_space(self._boxes, shown=size, seen=self._form.seen(self._order, *size))

    def _put(
        self, parts: Sequence[Part], exhibits: Sequence[ClipInput]
    ) -> Iterator[MediaFilePaths]:
        owners = {id(frame): exhibit for exhibit in exhibits for frame in exhibit.frames}
        wholes = iter(exhibits)
        for part in parts:
            match part:
                case ImagePart(frame):
                    yield MediaFilePaths((self._media.put_frame(owners[id(frame)].clip, frame),))
                case VideoPart(frames):
                    clip = owners[id(frames[0])].clip
                    yield MediaFilePaths(
                        tuple(self._media.put_frame(clip, frame) for frame in frames)
                    )
                case ClipFilePart():
                    yield MediaFilePaths((self._media.put_file(next(wholes).clip),))
                case _:
                    pass

    def _skew(self, written: TrainerConversation) -> float:
        """Return the largest difference between the times of the frames and the trainer's timestamps."""
        pace = self._order.pace
        if pace is None:
            return 0.0
        return max(abs(float(at - i / pace.fps)) for i, at in enumerate(written.instants))


def _get_file_suffix(clip: Clip) -> str:
    """Return the clip's file suffix if it is a known container suffix, else `.mp4`."""
    suffix = PurePosixPath(clip.location).suffix.lower()
    return suffix if suffix in {".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif", ".m4v"} else ".mp4"


def _round_up_max_length(longest: int) -> int:
    return -(-int(longest * _ROOM) // _ROUND) * _ROUND


def _list_export_differences(order: TrainerExportJob) -> list[str]:
    differences = []
    prompts = [data.instrument.prompt(data.asked.prompt).text for data in order.recipe.data]
    if any("<video> " in text for text in prompts):
        differences.append(
            "the prompt's own mark `<video> ` gives way to the clip's place: these trainers would look for "
            "a second clip. Here it stays a word of the question"
        )
    if len({data.weight for data in order.recipe.data}) > 1:
        differences.append(
            "rows have the order and number of the first epoch; later epochs repeat it, while a "
            "training here samples again by weight"
        )
    return differences


def _format_manifest_json(
    order: TrainerExportJob, form: TrainerExportFormat, exported: ExampleExportResult
) -> str:
    pace = order.pace
    document = {
        "unreel": version("unreel"),
        "trainer": form.name,
        "written_for": form.known_from,
        "command": exported.command,
        "recipe": order.recipe.model_dump(mode="json"),
        "input": order.recipe.input,
        "clips_go_as": order.shape,
        "boxes": get_model_family(order.recipe.model.family).boxes,
        "sampling_asked": order.condition.sampling,
        "sampling_used": exported.sampling,
        "told": {
            "fps": None if pace is None else str(pace.fps),
            "most_frames": None if pace is None else pace.at_most,
            "most_pixels": order.most_pixels,
        },
        "n_train": exported.n_train,
        "n_held_out": exported.n_held_out,
        "left_out": dict(exported.left_out),
        "differences": list(exported.differences),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
