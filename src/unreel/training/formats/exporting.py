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
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.ask import PresentationSettings
from unreel.reviewers.contract import ClipInput, ShownFrame, WholeClip
from unreel.reviewers.endpoint.families import get_family, name_space
from unreel.reviewers.local.input_format import write_taught
from unreel.reviewers.message_parts import FilePart, ImagePart, Part, VideoPart, compose_message
from unreel.reviewers.message_parts import Showing as Form
from unreel.training.examples.example import TrainingExample
from unreel.training.examples.presentation import SEEN, build_lesson
from unreel.training.formats.contract import HELD_OUT, TRAIN, TrainerFormat, require_takes
from unreel.training.formats.conversation import MediaPart, TrainerConversation, build_conversation
from unreel.training.formats.order import ExportJob, Keeping, Shape
from unreel.training.formats.sizes import side_of

MANIFEST: Final = "unreel-export.json"
ROWS: Final = "rows.jsonl"
_MEDIA: Final = "media"
_ROOM: Final = 1.25
"""Texts may be longer than they are counted to be here."""
_ROUND: Final = 256
_FORMS: Final[Mapping[Shape, Form]] = {"pictures": "frames", "film": "video", "file": "clip"}
_NO_BYTES: Final = WholeClip(b"", "application/octet-stream")
"""In the place of a file that is linked and not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedExamples:
    """Result of an export, with the rows that could not be written."""

    folder: Path
    trainer: str
    n_train: int
    n_held_out: int
    sampling: str
    differences: tuple[str, ...]
    left_out: Mapping[str, int]
    """Rows that could not be written, by reason."""
    first: tuple[Rejected, ...]
    command: str


def export_examples(
    order: ExportJob,
    parts: Mapping[str, Sequence[TrainingExample]],
    form: TrainerFormat,
    *,
    folder: Path,
    showing: PresentationSettings,
) -> ExportedExamples:
    """Write the examples of each of `parts` (`train`, `held_out`) to the new `folder`, for `form`.

    Raises:
        InvalidSettingError: The trainer cannot take what the recipe asks for.
        UnreadableSourceError: No example could be written.
    """
    require_takes(form, order)
    form.files(
        order, {TRAIN: ()}, _ROUND
    )  # what it cannot be told is said before clips are decoded
    into = OutputDirectory(folder, published=True)
    desk = _ConversationBuilder(order, form, showing, _MediaStore(into, showing, order.keeping))
    rows: dict[str, list[Mapping[str, Any]]] = {TRAIN: [], HELD_OUT: []}
    reasons: Counter[str] = Counter()
    first: list[Rejected] = []
    longest = _ROUND
    with into.create_text(ROWS) as told:
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
                told.write(json.dumps(desk.tell(part, written), ensure_ascii=False) + "\n")
    if not rows[TRAIN]:
        problem = f"no example could be written for {form.name}"
        remedy = f"The first is {first[0]}" if first else "Check the data"
        raise UnreadableSourceError(str(folder), problem, remedy)
    rows = {part: own for part, own in rows.items() if own}
    for name, text in form.files(order, rows, _add_length_margin(longest)).items():
        into.write(name, text.encode())
    # Put beside what was trained there, it lets `local/PATH` ask that as it was taught.
    write_taught(order.recipe.taught, folder)
    exported = ExportedExamples(
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


class _MediaStore:
    """Puts the media of each clip into the folder once."""

    def __init__(
        self, into: OutputDirectory, showing: PresentationSettings, keeping: Keeping
    ) -> None:
        self._into, self._showing, self._keeping = into, showing, keeping
        self._there: dict[str, str] = {}

    def put_file(self, clip: Clip) -> str:
        """Link or copy the clip's file unchanged, and return its path."""
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
        """Write a frame with exactly the bytes that were shown, and return its path."""
        mark = digest("shown frame", clip.id, str(frame.index), str(frame.width), str(frame.height))
        if mark not in self._there:
            size = f"{frame.width}x{frame.height}"
            name = f"{_MEDIA}/{clip.id[:16]}-{size}/{frame.index:06d}.jpg"
            self._into.write(name, frame.jpeg)
            self._there[mark] = name
        return self._there[mark]


class _ConversationBuilder:
    """Turns examples into conversations, with boxes in the space that the trainer's resize gives."""

    def __init__(
        self,
        order: ExportJob,
        form: TrainerFormat,
        showing: PresentationSettings,
        media: _MediaStore,
    ) -> None:
        self._order, self._form, self._showing, self._media = order, form, showing, media
        self._boxes = get_family(order.recipe.model.family).boxes

    def write(self, example: TrainingExample) -> TrainerConversation | Failure:
        exhibits = self._exhibits(example)
        if isinstance(exhibits, Failure):
            return exhibits
        lesson = build_lesson(example, exhibits, self)
        if isinstance(lesson, Failure):
            return lesson
        shape = self._order.shape
        parts = compose_message(lesson.sheet, form=_FORMS[shape], times="seconds")
        if isinstance(parts, Failure):
            return parts
        return build_conversation(lesson, parts, list(self._put(parts, exhibits)))

    def tell(self, part: str, written: TrainerConversation) -> dict[str, Any]:
        """Return the record of one row: enough to parse its answer back."""
        example = written.lesson.example
        told: dict[str, Any] = {
            "part": part,
            "key": example.key,
            "name": example.name,
            "clips": list(example.question.shown),
            "box_space": written.lesson.box_space,
            "prompt": example.question.condition.prompt,
            "answer": written.answer,
        }
        if written.instants:
            told["instants_s"] = [round(float(at), 6) for at in written.instants]
            told["off_the_beat_s"] = round(self._skew(written), 6)
        return told

    def tokens(self, written: TrainerConversation) -> int:
        """Estimate the number of tokens of its text and pictures."""
        exhibit = written.lesson.sheet.exhibits[0]
        wide, high = self._form.seen(self._order, *exhibit.shown_size)
        pace = self._order.pace
        n_frames = len(written.instants)
        if not n_frames and pace is not None:
            seconds = sum(float(c.facts.video.duration_s) for c in written.lesson.example.clips)
            n_frames = min(pace.at_most, int(seconds * pace.fps) + 2)
        side = side_of(self._order.recipe.model.family)
        seen = n_frames * (-(-wide // side) * -(-high // side) + 2)
        return seen + len(written.asked) + len(written.answer)

    def _exhibits(self, example: TrainingExample) -> tuple[ClipInput, ...] | Failure:
        if self._order.shape == "file":
            return tuple(ClipInput(clip=clip, whole=_NO_BYTES) for clip in example.clips)
        return self._showing.show(example.clips, example.question.condition, SEEN)

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes after the trainer's resize of `exhibit`."""
        shown = exhibit.shown_size
        return name_space(self._boxes, shown=shown, seen=self._form.seen(self._order, *shown))

    def _put(self, parts: Sequence[Part], exhibits: Sequence[ClipInput]) -> Iterator[MediaPart]:
        owners = {id(frame): exhibit for exhibit in exhibits for frame in exhibit.frames}
        wholes = iter(exhibits)
        for part in parts:
            match part:
                case ImagePart(frame):
                    yield MediaPart((self._media.put_frame(owners[id(frame)].clip, frame),))
                case VideoPart(frames):
                    clip = owners[id(frames[0])].clip
                    yield MediaPart(tuple(self._media.put_frame(clip, frame) for frame in frames))
                case FilePart():
                    yield MediaPart((self._media.put_file(next(wholes).clip),))
                case _:
                    pass

    def _skew(self, written: TrainerConversation) -> float:
        """Return the maximum distance of a video's frames from the timestamps that the trainer assigns."""
        pace = self._order.pace
        if pace is None:
            return 0.0
        return max(abs(float(at - i / pace.fps)) for i, at in enumerate(written.instants))


def _get_file_suffix(clip: Clip) -> str:
    """Return the clip's file suffix if it is a known container suffix, else `.mp4`."""
    own = PurePosixPath(clip.location).suffix.lower()
    return own if own in {".mp4", ".mov", ".mkv", ".webm", ".avi", ".gif", ".m4v"} else ".mp4"


def _add_length_margin(longest: int) -> int:
    return -(-int(longest * _ROOM) // _ROUND) * _ROUND


def _list_export_differences(order: ExportJob) -> list[str]:
    told = []
    prompts = [data.instrument.prompt(data.asked.prompt).text for data in order.recipe.data]
    if any("<video> " in text for text in prompts):
        told.append(
            "the prompt's own mark `<video> ` gives way to the clip's place: these trainers would look for "
            "a second clip. Here it stays a word of the question"
        )
    if len({data.weight for data in order.recipe.data}) > 1:
        told.append(
            "rows have the order and number of the first epoch; later epochs repeat it, while a "
            "training here samples again by weight"
        )
    return told


def _format_manifest_json(order: ExportJob, form: TrainerFormat, exported: ExportedExamples) -> str:
    pace = order.pace
    document = {
        "unreel": version("unreel"),
        "trainer": form.name,
        "written_for": form.known_from,
        "command": exported.command,
        "recipe": order.recipe.model_dump(mode="json"),
        "input": order.recipe.input,
        "clips_go_as": order.shape,
        "boxes": get_family(order.recipe.model.family).boxes,
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
