"""Input format of a trained checkpoint, stored in a file next to its weights."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from unreel.core.input_files import RECIPE_BYTES, parse_json, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition
from unreel.recipes.validation import (
    MOST_PARTS,
    Count,
    MaxTokens,
    RecipeSection,
    Text,
    validate_recipe_sections,
)
from unreel.reviewers.condition_section import ConditionSection

FILE = "unreel.json"

Form = Literal["frames", "video"]
"""Input form: single frames, each after its timestamp, or one video with the processor's own timestamps."""
FamilyName = Literal["qwen2.5-vl", "qwen3-vl", "videollama3"]
"""Architectures that can be trained and run locally, named as in `reviewers.endpoint.model_families`."""


class ProtocolTrainingCondition(RecipeSection):
    """A protocol that a checkpoint was trained on, and the condition of its training questions."""

    protocol: Text
    version: Count
    condition: ConditionSection


class CheckpointInputSpec(RecipeSection):
    """Input format of a checkpoint: all settings that decide what it sees of a question.

    The same weights with another form count as another model.
    """

    family: FamilyName
    input: Form
    box_space: Text
    """Coordinate convention of its boxes: `model-input`, `permille`, `unit` or `pixel`."""
    instruments: Annotated[tuple[ProtocolTrainingCondition, ...], Field(max_length=MOST_PARTS)] = ()
    base: Text | None = None
    """Base model of an adapter: a folder, also relative to the adapter's, or a name on the Hugging Face Hub."""
    base_digest: Text | None = None
    """Digest of the weights of the base model."""
    max_tokens: MaxTokens | None = None
    """Token limit of its answers in training, which is the default limit of its questions."""

    def condition(self, protocol: str) -> Condition | None:
        """Return the condition in which the checkpoint was trained on `protocol`; `None` if it was not."""
        for input_spec in self.instruments:
            if input_spec.protocol == protocol:
                return input_spec.condition.as_condition()
        return None


def read_checkpoint_input_spec(folder: Path) -> CheckpointInputSpec | None:
    """Read the input format of the checkpoint in `folder`; `None` if unreel did not train it."""
    file = folder / FILE
    if not file.exists():
        return None
    return validate_recipe_sections(
        CheckpointInputSpec, parse_json(read_limited_bytes(file, most=RECIPE_BYTES))
    )


def write_checkpoint_input_spec(input_spec: CheckpointInputSpec, folder: Path) -> None:
    """Write the input format of a checkpoint to a file in its folder."""
    text = input_spec.model_dump_json(indent=2) + "\n"
    OutputDirectory(folder.absolute(), published=True).write(FILE, text.encode())
