"""Memory of a training on one device.

- Weights, gradients and AdamW states in mixed precision: 2 + 2 + 12 bytes per trained parameter
  (a 32-bit copy and two moments), 2 bytes per frozen parameter; in `fp32` 4 + 4 + 8 bytes and
  4 bytes. `fsdp` divides all of them by the number of devices.
- Activations of a layer: 34 bytes x tokens x width in 16 bits (Korthikanti et al., arXiv
  2205.05198, without the attention matrix, which fused kernels never write). With gradient
  checkpointing a layer keeps 2 bytes x tokens x width, and only one layer at a time has all its
  activations.
- Scores of the last layer: 3 x 4 bytes x tokens x vocabulary (the scores, their logarithm and
  its gradient).
- Libraries, kernels and fragmentation: 4 GiB.
"""

from dataclasses import dataclass
from typing import Final

from unreel.training.example_cost import ExampleCost
from unreel.training.plan.architecture import ModelArchitecture
from unreel.training.plan.device import GIB
from unreel.training.recipe import ModelSection

_FORWARD: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleOperations:
    """Operations for one example."""

    text: float
    vision: float

    @property
    def total(self) -> float:
        """Return the operations of the text and the vision part together."""
        return self.text + self.vision


def count_training_operations(
    model: ModelSection, architecture: ModelArchitecture, load: ExampleCost
) -> ExampleOperations:
    """Return the operations for training on one example like `load`."""
    again = _FORWARD if model.gradient_checkpointing else 0
    spoken = (6 if model.tune == "full" else 4) + again
    learns = model.vision == "trained"
    seen = 6 + again if learns else _FORWARD
    return _count_operations(architecture, load, tokens=load.tokens, spoken=spoken, seen=seen)


def count_question_operations(
    architecture: ModelArchitecture, load: ExampleCost
) -> ExampleOperations:
    """Return the operations for reading one question, before the answer."""
    tokens = load.tokens - load.answer_tokens
    return _count_operations(architecture, load, tokens=tokens, spoken=_FORWARD, seen=_FORWARD)


def _count_operations(
    architecture: ModelArchitecture, load: ExampleCost, *, tokens: int, spoken: int, seen: int
) -> ExampleOperations:
    """Count the operations for one example.

    `spoken` is the number of operations per parameter and token of the text part, `seen` the number
    per parameter and patch of the vision part.
    """
    text, vision = architecture.text, architecture.vision
    attention = spoken * text.layers * text.hidden * tokens**2
    looking = 2 * seen * vision.full_layers * vision.hidden * load.patches * load.patches_at_once
    return ExampleOperations(
        text=float(spoken * text.worked * tokens + attention),
        vision=float(seen * vision.parameters * load.patches + looking),
    )


_LAYER: Final = 34
_KEPT: Final = 2
_SCORES: Final = 3 * 4
_AROUND_GIB: Final = 4.0
_STATES: Final = {"bf16": (2, 2, 12), "fp32": (4, 4, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """GiB on one device, part by part."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    scores: float
    around: float = _AROUND_GIB

    @property
    def total(self) -> float:
        """Return the sum of all parts in GiB."""
        return (
            self.weights
            + self.gradients
            + self.optimiser
            + self.activations
            + self.scores
            + self.around
        )


def count_trained(model: ModelSection, architecture: ModelArchitecture) -> int:
    """Count the trained parameters."""
    if model.tune == "lora":
        text = architecture.text.adapter(model.lora_rank)
    else:
        text = architecture.text.parameters
    return text + (architecture.vision.parameters if model.vision == "trained" else 0)


def estimate_memory(
    model: ModelSection,
    architecture: ModelArchitecture,
    load: ExampleCost,
    *,
    batch: int,
    shards: int,
) -> DeviceMemory:
    """Return the memory for `batch` examples like `load`, with the model's states divided by `shards`."""
    weight, gradient, optimiser = _STATES[model.precision]
    trained = count_trained(model, architecture)
    held = architecture.text.parameters + architecture.vision.parameters
    if model.tune == "lora":
        held += architecture.text.adapter(model.lora_rank)
    scale = 1 if model.precision == "bf16" else 2
    return DeviceMemory(
        weights=weight * held / shards / GIB,
        gradients=gradient * trained / shards / GIB,
        optimiser=optimiser * trained / shards / GIB,
        activations=scale * batch * _count_activations(model, architecture, load) / GIB,
        scores=_SCORES * batch * load.tokens * architecture.text.vocabulary / GIB,
    )


def _count_activations(
    model: ModelSection, architecture: ModelArchitecture, load: ExampleCost
) -> float:
    text, vision = architecture.text, architecture.vision
    kept = _KEPT if model.gradient_checkpointing else _LAYER
    spoken = load.tokens * text.hidden * (kept * text.layers + _LAYER)
    layers = vision.layers if model.vision == "trained" else 0
    seen = load.patches * vision.hidden * (kept * layers + _LAYER)
    return float(spoken + seen)
