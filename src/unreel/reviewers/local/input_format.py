"""Input format of a trained checkpoint: stored with its weights, and used by all callers."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition
from unreel.core.small_documents import RECIPE_BYTES, parse_json, read_bytes
from unreel.recipes.check import check_sections
from unreel.recipes.section import MOST_PARTS, Count, RecipeSection, Text
from unreel.reviewers.condition import ConditionSection

FILE: Final = "unreel.json"

Form = Literal["frames", "video"]
"""Frames one by one, each behind its instant, or as one video with the processor's own time marks."""
FamilyName = Literal["qwen2.5-vl", "qwen3-vl", "videollama3"]
"""The architectures that can be trained and run here; the words of `reviewers.endpoint.families`."""


class TaughtInstrument(RecipeSection):
    """A question that it was taught to answer."""

    protocol: Text
    version: Count
    condition: ConditionSection


class InputSpec(RecipeSection):
    """Input format of a checkpoint: all settings that decide what it sees of a question.

    The same weights with another form count as another model.
    """

    family: FamilyName
    input: Form
    box_space: Text
    """The convention of its boxes: `model-input`, `permille`, `unit` or `pixel`."""
    instruments: Annotated[tuple[TaughtInstrument, ...], Field(max_length=MOST_PARTS)] = ()
    base: Text | None = None
    """Of an adapter: the model that it belongs on."""
    base_digest: Text | None = None
    """Of that model's weights."""

    def condition(self, protocol: str) -> Condition | None:
        """Return the training condition of the protocol of that name; `None` if there is none."""
        for taught in self.instruments:
            if taught.protocol == protocol:
                return taught.condition.as_condition()
        return None


def read_taught(folder: Path) -> InputSpec | None:
    """Return the declaration of the checkpoint in `folder`; `None` for a model that unreel did not train."""
    file = folder / FILE
    if not file.exists():
        return None
    return check_sections(InputSpec, parse_json(read_bytes(file, most=RECIPE_BYTES)))


def write_taught(taught: InputSpec, folder: Path) -> None:
    """Write the input format to a file next to the weights."""
    text = taught.model_dump_json(indent=2) + "\n"
    OutputDirectory(folder.absolute(), published=True).write(FILE, text.encode())
