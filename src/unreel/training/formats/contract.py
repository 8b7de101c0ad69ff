"""Interface of an export to another trainer, and the table of known trainers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from unreel.core.errors import InvalidSettingError
from unreel.core.registry import LazyImport, NameRegistry
from unreel.reviewers.local.input_format import FamilyName
from unreel.training.formats.conversation import TrainerConversation
from unreel.training.formats.order import ExportJob, Shape

TRAIN: Final = "train"
HELD_OUT: Final = "held_out"


class TrainerFormat(Protocol):
    """Writes rows and settings as one trainer reads them."""

    @property
    def name(self) -> str:
        """Return the name on the command line."""
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
        """Return the supported input shapes."""
        ...

    def seen(self, order: ExportJob, width: int, height: int) -> tuple[int, int]:
        """Return the size at which the model sees a frame that the trainer receives at the given size."""
        ...

    def sampling(self, order: ExportJob) -> str:
        """Return the frames that the trainer samples: an equal sampling plan of unreel, or a description."""
        ...

    def differences(self, order: ExportJob) -> Sequence[str]:
        """Return the unavoidable differences from a training here, with advice."""
        ...

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        """Return one row in the trainer's format."""
        ...

    def files(
        self, order: ExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        """Return the text of all files by name.

        The files are the rows of each part, and settings for texts of up to `longest` tokens.
        """
        ...

    def command(self, order: ExportJob) -> str:
        """Return the command to run in the folder."""
        ...


FORMATS: Final[NameRegistry[TrainerFormat]] = NameRegistry(
    "trainer",
    {
        "llamafactory": LazyImport("unreel.training.formats.llamafactory:FORMAT"),
        "ms-swift": LazyImport("unreel.training.formats.swift:FORMAT"),
        "qwen-vl-finetune": LazyImport("unreel.training.formats.qwen_finetune:FORMAT"),
        "videollama3": LazyImport("unreel.training.formats.videollama3:FORMAT"),
    },
)


def require_takes(form: TrainerFormat, order: ExportJob) -> None:
    """Raise for what the trainer cannot take.

    Raises:
        InvalidSettingError: It trains no such model, or takes clips in other shapes.
    """
    family = order.recipe.model.family
    if family not in form.families:
        setting, problem = "model.family", f"{form.name} trains no {family}"
        raise InvalidSettingError(setting, problem, f"It trains: {', '.join(form.families)}")
    if order.shape not in form.shapes:
        setting, problem = "--as-frames", f"{form.name} takes no video as a list of frames"
        remedy = 'Leave it out, or set input="frames": pictures, each behind its instant'
        raise InvalidSettingError(setting, problem, remedy)
