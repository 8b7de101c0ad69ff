"""Interface of the export to another trainer, the exported rows, and the known trainers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.core.registry import LazyImport, NamedObjectRegistry
from unreel.media.sampling import LlamaFactorySampling, PerSecondSampling, parse_sampling
from unreel.protocols.presentation import LONGEST_SIDE, shows_frame_times
from unreel.reviewers.local.input_format import FamilyName
from unreel.reviewers.message_parts import ClipFilePart, ImagePart, Part, TextPart, VideoPart
from unreel.training.examples.example import TrainingExampleInput
from unreel.training.recipe import TrainRecipe

IMAGE: Final = "<image>"
VIDEO: Final = "<video>"
_PLACE: Final = re.compile(r"<(?:image|video|audio)> ?")
_OWN: Final = re.compile(r"<(?:image|video|audio)>|<\|")
"""Pattern of text that answers must not contain: media tags, and the start of chat template tags (`<|`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConversation:
    """One training example as a conversation for another trainer: question, media paths and answer."""

    lesson: TrainingExampleInput
    asked: str
    """Question text with a tag `<image>` or `<video>` at the position of each image or video."""
    images: tuple[str, ...] = ()
    """Paths of the images, relative to the export folder."""
    videos: tuple[str | tuple[str, ...], ...] = ()
    """Path of each video, or paths of its frames, relative to the export folder."""
    instants: tuple[Fraction, ...] = field(default=(), repr=False)
    """Timestamps of the sampled frames; empty if clip files are exported."""

    @property
    def answer(self) -> str:
        """Return the target answer."""
        return self.lesson.target

    def by_role(self) -> dict[str, Any]:
        """Return the conversation in the format of chat servers: messages with roles, and lists of media."""
        turns = [
            {"role": "user", "content": self.asked},
            {"role": "assistant", "content": self.answer},
        ]
        return {"messages": turns} | self._media("videos", "images")

    def by_speaker(self) -> dict[str, Any]:
        """Return the conversation in LLaVA's format: messages by speaker, media lists with singular names."""
        turns = [{"from": "human", "value": self.asked}, {"from": "gpt", "value": self.answer}]
        return self._media("video", "image") | {"conversations": turns}

    def _media(self, videos: str, images: str) -> dict[str, Any]:
        return {videos: list(self.videos)} if self.videos else {images: list(self.images)}


@dataclass(frozen=True, slots=True)
class MediaFilePaths:
    """Paths of the media files that replace one media tag."""

    paths: tuple[str, ...]


def build_trainer_conversation(
    lesson: TrainingExampleInput, parts: Sequence[Part], media: Sequence[MediaFilePaths]
) -> TrainerConversation | Failure:
    """Build the conversation of the training example `lesson` for another trainer.

    Its media files are at `media`, in the order of `parts`. Media tags in the prompt text are removed
    and each clip gets its own tag: otherwise these trainers would expect a second clip. The result is
    a failure if the answer contains a special tag of the trainer, or if a part is sound.
    """
    if match := _OWN.search(lesson.target):
        reason = f"not taught: its answer contains {match[0]!r}, a special tag of the trainer"
        return Failure(FailureReason.REQUEST_REJECTED, reason)
    texts: list[str] = []
    images: list[str] = []
    videos: list[str | tuple[str, ...]] = []
    instants: list[Fraction] = []
    left = iter(media)
    for part in parts:
        match part:
            case TextPart(text):
                texts.append(_PLACE.sub("", text))
            case ImagePart(frame):
                texts.append(IMAGE)
                images += next(left).paths
                instants.append(frame.at_s)
            case VideoPart(frames):
                texts.append(VIDEO)
                videos.append(next(left).paths)
                instants += [frame.at_s for frame in frames]
            case ClipFilePart():
                texts.append(VIDEO)
                videos += next(left).paths
            case _:
                reason = "not taught: these trainers are given no sound"
                return Failure(FailureReason.REQUEST_REJECTED, reason)
    return TrainerConversation(
        lesson=lesson,
        asked="".join(texts),
        images=tuple(images),
        videos=tuple(videos),
        instants=tuple(instants),
    )


Shape = Literal["pictures", "film", "file"]
"""`pictures`: sampled frames as images, each after its timestamp; `film`: sampled frames as one video; `file`: the
clip's own file, from which the trainer samples frames by its own rule."""
Keeping = Literal["link", "copy"]
"""Whether a clip's own file is linked or copied; it is never re-encoded."""
MOST_FRAMES: Final = 768
"""Maximum number of frames of a clip if the recipe's sampling sets none: the limit of Qwen's own tools."""
_FRAMES: Final = 'Set input="frames", which every trainer uses unchanged'


@dataclass(frozen=True, slots=True)
class FrameRateSampling:
    """Sampling by frames per second, up to a maximum number: the only one that other trainers support."""

    fps: Fraction
    at_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerExportJob:
    """Settings of one export to another trainer: the recipe, and the form of the exported clips."""

    recipe: TrainRecipe
    shape: Shape
    condition: Condition
    """Condition of the data, because a trainer has one for all; for pictures, that of the largest frames."""
    pace: FrameRateSampling | None
    """Frame rate and maximum number of frames; `None` for pictures, whose timestamps are text."""
    keeping: Keeping
    model_folder: Path | None
    """Folder of the model, if it is local."""

    @property
    def most_pixels(self) -> int:
        """Return the maximum number of pixels of a frame, for trainers that do not limit its longest side."""
        return self.condition.max_pixels or LONGEST_SIDE**2

    @property
    def shows_times(self) -> bool:
        """Return whether any question of the recipe shows the timestamps of its frames."""
        return any(shows_frame_times(data.protocol, data.asked.marks) for data in self.recipe.data)


def create_trainer_export_job(
    recipe: TrainRecipe, *, as_film: bool = False, keeping: Keeping = "link"
) -> TrainerExportJob:
    """Return the settings of the export of `recipe` to another trainer.

    With `as_film` the sampled frames are exported instead of the clip's file. `keeping` decides if
    clip files are linked or copied.

    Raises:
        InvalidSettingError: No other trainer supports the recipe's settings.
    """
    conditions = {data.asked for data in recipe.data}
    shape: Shape = "pictures" if recipe.input == "frames" else "film" if as_film else "file"
    if as_film and shape == "pictures":
        setting, problem = "--as-frames", 'has no effect under input="frames"'
        raise InvalidSettingError(setting, problem, "Leave it out")
    alike = {(c.sampling, c.max_pixels) for c in conditions}
    if shape != "pictures" and len(alike) > 1:
        setting, problem = "data.condition", "a trainer has one sampling and one size for all data"
        raise InvalidSettingError(setting, problem, f"Make them alike, or: {_FRAMES}")
    condition = max(conditions, key=lambda each: (each.max_pixels or LONGEST_SIDE**2, str(each)))
    folder = Path(recipe.model.name)
    return TrainerExportJob(
        recipe=recipe,
        shape=shape,
        condition=condition,
        pace=None if shape == "pictures" else _parse_frame_rate_sampling(condition.sampling),
        keeping=keeping,
        model_folder=folder.resolve() if folder.is_dir() else None,
    )


def _parse_frame_rate_sampling(sampling: str) -> FrameRateSampling:
    match parse_sampling(sampling):
        case PerSecondSampling(fps, at_most):
            return FrameRateSampling(fps, at_most or MOST_FRAMES)
        case LlamaFactorySampling(fps, at_most):
            return FrameRateSampling(fps, at_most)
        case _:
            setting, problem = "data.condition.sampling", f"no other trainer takes {sampling}"
            remedy = f"Name a rate, for example fps-2-max-180. Or: {_FRAMES}"
            raise InvalidSettingError(setting, problem, remedy)


TRAIN: Final = "train"
HELD_OUT: Final = "held_out"


class TrainerExportFormat(Protocol):
    """Interface of an export format: training examples and settings in the format of one trainer."""

    @property
    def name(self) -> str:
        """Return the name of the trainer on the command line."""
        ...

    @property
    def known_from(self) -> str:
        """Return the version or commit of the trainer that this format was written for."""
        ...

    @property
    def families(self) -> Mapping[FamilyName, str]:
        """Return the model families that the trainer supports, each with the trainer's name for it."""
        ...

    @property
    def shapes(self) -> Sequence[Shape]:
        """Return the forms in which the trainer accepts clips: pictures, lists of frames or files."""
        ...

    def seen(self, order: TrainerExportJob, width: int, height: int) -> tuple[int, int]:
        """Return the size at which the model sees a frame that the trainer receives at the given size."""
        ...

    def sampling(self, order: TrainerExportJob) -> str:
        """Return the trainer's sampling of frames: an equal sampling plan of unreel, or a description."""
        ...

    def differences(self, order: TrainerExportJob) -> Sequence[str]:
        """Return the unavoidable differences from a training by unreel, with advice."""
        ...

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        """Return one training row in the trainer's format."""
        ...

    def files(
        self, order: TrainerExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        """Return file texts by name: rows of each part, and settings for texts of up to `longest` tokens."""
        ...

    def command(self, order: TrainerExportJob) -> str:
        """Return the command that starts the trainer, to be run in the export folder."""
        ...


FORMATS: Final[NamedObjectRegistry[TrainerExportFormat]] = NamedObjectRegistry(
    "trainer",
    {
        "llamafactory": LazyImport("unreel.training.formats.llamafactory:FORMAT"),
        "ms-swift": LazyImport("unreel.training.formats.swift:FORMAT"),
        "qwen-vl-finetune": LazyImport("unreel.training.formats.qwen_finetune:FORMAT"),
        "videollama3": LazyImport("unreel.training.formats.videollama3:FORMAT"),
    },
)


def require_trainer_support(form: TrainerExportFormat, order: TrainerExportJob) -> None:
    """Raise if the trainer does not support the model family or the form of the clips.

    Raises:
        InvalidSettingError: The trainer does not support the model family or the form of the clips.
    """
    family = order.recipe.model.family
    if family not in form.families:
        setting, problem = "model.family", f"{form.name} trains no {family}"
        raise InvalidSettingError(setting, problem, f"It trains: {', '.join(form.families)}")
    if order.shape not in form.shapes:
        setting, problem = "--as-frames", f"{form.name} takes no video as a list of frames"
        remedy = 'Leave it out, or set input="frames": pictures, each after its time'
        raise InvalidSettingError(setting, problem, remedy)
