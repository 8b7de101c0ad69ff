"""Data sheets of accelerators, and floating-point operations and memory of a training on one."""

from dataclasses import dataclass
from typing import Final

from unreel.core.errors import UnknownNameError
from unreel.training.example_cost import ExampleCost
from unreel.training.plan.architecture import ModelArchitecture
from unreel.training.recipe import TrainedModelSection

GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorDevice:
    """Accelerator: dense peak speeds without sparsity, memory, and memory bandwidth."""

    name: str
    bf16_flops: float
    fp32_flops: float
    memory_gib: float
    bytes_per_s: float

    def peak(self, precision: str) -> float:
        """Return the peak operations per second in `bf16` or `fp32`."""
        return self.bf16_flops if precision == "bf16" else self.fp32_flops


# Sources: the manufacturers' data sheets. Memory as reported by a driver, a little below nominal.
DEVICES: Final = {
    device.name: device
    for device in (
        AcceleratorDevice(
            name="h100",
            bf16_flops=989e12,
            fp32_flops=67e12,
            memory_gib=79.6,
            bytes_per_s=3.35e12,
        ),
        AcceleratorDevice(
            name="h200",
            bf16_flops=989e12,
            fp32_flops=67e12,
            memory_gib=140.4,
            bytes_per_s=4.8e12,
        ),
        AcceleratorDevice(
            name="b200",
            bf16_flops=2250e12,
            fp32_flops=75e12,
            memory_gib=179.0,
            bytes_per_s=8.0e12,
        ),
        AcceleratorDevice(
            name="a100",
            bf16_flops=312e12,
            fp32_flops=19.5e12,
            memory_gib=79.3,
            bytes_per_s=2.04e12,
        ),
        AcceleratorDevice(
            name="a100-40",
            bf16_flops=312e12,
            fp32_flops=19.5e12,
            memory_gib=39.4,
            bytes_per_s=1.56e12,
        ),
        AcceleratorDevice(
            name="l40s",
            bf16_flops=362e12,
            fp32_flops=91.6e12,
            memory_gib=44.5,
            bytes_per_s=0.86e12,
        ),
        AcceleratorDevice(
            name="rtx4090",
            bf16_flops=165e12,
            fp32_flops=82.6e12,
            memory_gib=23.5,
            bytes_per_s=1.01e12,
        ),
        AcceleratorDevice(
            name="mi300x",
            bf16_flops=1307e12,
            fp32_flops=163e12,
            memory_gib=191.0,
            bytes_per_s=5.3e12,
        ),
    )
}


def get_accelerator_device(name: str) -> AcceleratorDevice:
    """Return the accelerator `name`, in any letter case; raise `UnknownNameError` if unknown."""
    device = DEVICES.get(name.lower())
    if device is None:
        kind = "device"
        raise UnknownNameError(kind, name, list(DEVICES))
    return device


_FORWARD: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleFlopCounts:
    """Floating-point operations for one example, in the text part and in the vision part."""

    text: float
    vision: float

    @property
    def total(self) -> float:
        """Return the operations of the text and the vision part together."""
        return self.text + self.vision


def count_training_flops(
    model: TrainedModelSection, architecture: ModelArchitecture, load: ExampleCost
) -> ExampleFlopCounts:
    """Count the floating-point operations for training on one example with the cost `load`."""
    recomputed = _FORWARD if model.gradient_checkpointing else 0
    text = (6 if model.tune == "full" else 4) + recomputed
    learns = model.vision == "trained"
    seen = 6 + recomputed if learns else _FORWARD
    return _count_example_flops(architecture, load, tokens=load.tokens, spoken=text, seen=seen)


def count_question_flops(architecture: ModelArchitecture, load: ExampleCost) -> ExampleFlopCounts:
    """Count the floating-point operations for reading one question, before its answer is generated."""
    tokens = load.tokens - load.answer_tokens
    return _count_example_flops(architecture, load, tokens=tokens, spoken=_FORWARD, seen=_FORWARD)


def _count_example_flops(
    architecture: ModelArchitecture, load: ExampleCost, *, tokens: int, spoken: int, seen: int
) -> ExampleFlopCounts:
    """Count the floating-point operations for one example in the text part and in the vision part.

    `spoken` is the number of operations per parameter and token of the text part, `seen` the number
    per parameter and patch of the vision part.
    """
    text, vision = architecture.text, architecture.vision
    attention = spoken * text.layers * text.hidden * tokens**2
    looking = 2 * seen * vision.full_layers * vision.hidden * load.patches * load.patches_at_once
    return ExampleFlopCounts(
        text=float(spoken * text.worked * tokens + attention),
        vision=float(seen * vision.parameters * load.patches + looking),
    )


_LAYER: Final = 34
_KEPT: Final = 2
_SCORES: Final = 3 * 4
_AROUND_GIB: Final = 4.0
_STATES: Final = {"bf16": (2, 2, 12), "fp32": (4, 4, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemoryEstimate:
    """Estimated memory of a training on one device in GiB, by purpose."""

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


def count_trained_parameters(model: TrainedModelSection, architecture: ModelArchitecture) -> int:
    """Count the parameters that are trained."""
    if model.tune == "lora":
        text = architecture.text.adapter(model.lora_rank)
    else:
        text = architecture.text.parameters
    return text + (architecture.vision.parameters if model.vision == "trained" else 0)


def estimate_device_memory(
    model: TrainedModelSection,
    architecture: ModelArchitecture,
    load: ExampleCost,
    *,
    batch: int,
    shards: int,
) -> DeviceMemoryEstimate:
    """Estimate a device's memory for `batch` examples; weights and optimiser are divided by `shards`."""
    weight, gradient, optimiser = _STATES[model.precision]
    trained = count_trained_parameters(model, architecture)
    parameters = architecture.text.parameters + architecture.vision.parameters
    if model.tune == "lora":
        parameters += architecture.text.adapter(model.lora_rank)
    scale = 1 if model.precision == "bf16" else 2
    return DeviceMemoryEstimate(
        weights=weight * parameters / shards / GIB,
        gradients=gradient * trained / shards / GIB,
        optimiser=optimiser * trained / shards / GIB,
        activations=scale * batch * _count_activation_bytes(model, architecture, load) / GIB,
        scores=_SCORES * batch * load.tokens * architecture.text.vocabulary / GIB,
    )


def _count_activation_bytes(
    model: TrainedModelSection, architecture: ModelArchitecture, load: ExampleCost
) -> float:
    text, vision = architecture.text, architecture.vision
    per_layer = _KEPT if model.gradient_checkpointing else _LAYER
    text_bytes = load.tokens * text.hidden * (per_layer * text.layers + _LAYER)
    layers = vision.layers if model.vision == "trained" else 0
    vision_bytes = load.patches * vision.hidden * (per_layer * layers + _LAYER)
    return float(text_bytes + vision_bytes)
