"""Estimate of the steps, memory, hours and cost of a training, with its assumptions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.reviewers.local.input_format import FamilyName
from unreel.training.example_cost import ExampleCost, ExampleStratum, compute_example_cost
from unreel.training.plan.architecture import ModelArchitecture
from unreel.training.plan.device_resources import (
    AcceleratorDevice,
    DeviceMemoryEstimate,
    count_question_flops,
    count_trained_parameters,
    count_training_flops,
    estimate_device_memory,
)
from unreel.training.recipe import TrainedModelSection, TrainingDevicesSection, TrainRecipe

HOUR_S: Final = 3600.0
WELL_FED: Final = 0.40
"""Fraction of the peak speed that efficient training loops over long texts reach on such devices."""
DECODED_PER_S: Final = 340e6
"""Decoded pixels per second on one core: 5 s of 1280 x 720 at 24 frames per second in 0.33 s, measured with PyAV."""
_MOST: Final = 100_000
"""Maximum number of devices of one training."""


@dataclass(frozen=True, slots=True)
class PeakSpeedFraction:
    """Fraction of the peak speed that devices reach, and the source of this number."""

    share: float
    reason: str


UTILISATION: Final[dict[FamilyName, PeakSpeedFraction]] = {
    "videollama3": PeakSpeedFraction(
        0.25,
        "DeepTraceReward's 40 minutes on eight H100, one clip of some 9,500 tokens a device, need it",
    ),
    "qwen2.5-vl": PeakSpeedFraction(
        0.045,
        "DeepTraceReward's 70 minutes on eight H100 need it: two short clips a device, so that decoding, "
        "gathering of sharded weights and start-up weigh more than the arithmetic",
    ),
    "qwen3-vl": PeakSpeedFraction(0.25, "no time is published for it: taken from videollama3"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingHardware:
    """Devices of a training: model, number, price and utilisation."""

    device: AcceleratorDevice
    count: int
    price_usd: Decimal | None = None
    """Price of one device per hour, in US dollars."""
    utilisation: float | None = None
    """Fraction of the peak speed, if it is known better than the default of the model family."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            setting, problem = "--gpus", f"cannot train on {self.count} devices"
            raise InvalidSettingError(setting, problem, f"Give a number from 1 to {_MOST}")
        if self.price_usd is not None and not (self.price_usd.is_finite() and self.price_usd >= 0):
            setting, problem = "--price", f"not a price: {self.price_usd}"
            raise InvalidSettingError(setting, problem, "Give dollars for one device and hour")
        if self.utilisation is not None and not 0 < self.utilisation <= 1:
            setting, problem = "--utilisation", f"not a fraction of the peak: {self.utilisation}"
            raise InvalidSettingError(setting, problem, "Give a share above 0 and up to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanExampleCost:
    """Mean frames and tokens of the training examples, and the cost of the largest example."""

    frames: float
    prompt_tokens: float
    vision_tokens: float
    answer_tokens: float
    largest: ExampleCost


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEstimate:
    """Estimated steps, hours, cost and memory of a training; nothing was run."""

    recipe: str
    device: str
    devices: int
    strategy: str
    parameters: int
    trained: int
    examples: int
    mean: MeanExampleCost
    steps: int
    flops: float
    compute_hours: float
    decode_hours: float
    watch_hours: float
    """Hours of validation on the held-out clips, included in `hours`."""
    hours: float
    well_fed_hours: float
    """Hours without validation, if the devices reached `WELL_FED` of their peak speed."""
    cost_usd: Decimal | None
    memory: DeviceMemoryEstimate
    memory_gib: float
    """Memory of one device in GiB."""
    remedies: tuple[str, ...]
    """Changes that reduce the memory, if it is insufficient; otherwise empty."""
    assumptions: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Return whether one device's memory is sufficient."""
        return not self.remedies


def estimate_training(
    recipe: TrainRecipe,
    strata: Sequence[ExampleStratum],
    architecture: ModelArchitecture,
    fleet: TrainingHardware,
) -> TrainingEstimate:
    """Estimate the training on `fleet` for `strata`; raise `InvalidSettingError` without examples."""
    if not strata:
        setting, problem = "data", "there is no example to plan for"
        raise InvalidSettingError(setting, problem, "Name a benchmark with truth")
    model, optimise = recipe.model, recipe.optimise
    loads = [compute_example_cost(stratum, model.family, recipe.input) for stratum in strata]
    n_examples = sum(stratum.examples for stratum in strata)
    in_step = optimise.batch_size * optimise.accumulate * fleet.count
    steps = max(1, math.ceil(n_examples * optimise.epochs / in_step))
    if optimise.max_steps is not None:
        steps = min(steps, optimise.max_steps)
    learned = min(n_examples * optimise.epochs, steps * in_step)
    mean = _compute_mean_example_cost(strata, loads)
    shares = [stratum.examples / n_examples for stratum in strata]
    flops = learned * sum(
        share * count_training_flops(model, architecture, load).total
        for share, load in zip(shares, loads, strict=True)
    )
    utilisation = fleet.utilisation or UTILISATION[model.family].share
    peak = fleet.device.peak(model.precision) * fleet.count
    reading = sum(
        share * count_question_flops(architecture, load).total
        for share, load in zip(shares, loads, strict=True)
    )
    answering_s = mean.answer_tokens * _estimate_seconds_per_token(model, architecture, fleet)
    n_asked = steps // recipe.watch.every * recipe.watch.clips
    watched_s = n_asked * (reading / (peak * utilisation) + answering_s)
    decoded = learned * sum(share * load.decoded for share, load in zip(shares, loads, strict=True))
    decode_s = decoded / (DECODED_PER_S * max(1, optimise.workers) * fleet.count)
    compute_s = flops / (peak * utilisation)
    hours = (max(compute_s, decode_s) + watched_s) / HOUR_S
    memory = estimate_device_memory(
        model,
        architecture,
        mean.largest,
        batch=optimise.batch_size,
        shards=fleet.count if _select_device_strategy(recipe.devices, fleet) == "fsdp" else 1,
    )
    return TrainingEstimate(
        recipe=recipe.name,
        device=fleet.device.name,
        devices=fleet.count,
        strategy=_select_device_strategy(recipe.devices, fleet),
        parameters=architecture.text.parameters + architecture.vision.parameters,
        trained=count_trained_parameters(model, architecture),
        examples=round(n_examples),
        mean=mean,
        steps=steps,
        flops=flops,
        compute_hours=compute_s / HOUR_S,
        decode_hours=decode_s / HOUR_S,
        watch_hours=watched_s / HOUR_S,
        hours=hours,
        well_fed_hours=max(flops / (peak * WELL_FED), decode_s) / HOUR_S,
        cost_usd=None
        if fleet.price_usd is None
        else _compute_cost_usd(fleet.price_usd, fleet.count, hours),
        memory=memory,
        memory_gib=fleet.device.memory_gib,
        remedies=_list_memory_remedies(recipe, memory, fleet),
        assumptions=_list_estimate_assumptions(recipe, architecture, fleet, utilisation),
    )


def _select_device_strategy(section: TrainingDevicesSection, fleet: TrainingHardware) -> str:
    if fleet.count == 1:
        return "single"
    return "ddp" if section.strategy == "single" else section.strategy


def _compute_cost_usd(price_usd: Decimal, count: int, hours: float) -> Decimal:
    return (price_usd * count * Decimal(hours)).quantize(Decimal("0.01"))


def _compute_mean_example_cost(
    strata: Sequence[ExampleStratum], loads: Sequence[ExampleCost]
) -> MeanExampleCost:
    total = sum(stratum.examples for stratum in strata)

    def average(counts: Sequence[int]) -> float:
        return sum(s.examples * n for s, n in zip(strata, counts, strict=True)) / total

    return MeanExampleCost(
        frames=average([load.n_frames for load in loads]),
        prompt_tokens=average([load.prompt_tokens for load in loads]),
        vision_tokens=average([load.vision_tokens for load in loads]),
        answer_tokens=average([load.answer_tokens for load in loads]),
        largest=max(loads, key=lambda load: load.tokens),
    )


def _estimate_seconds_per_token(
    model: TrainedModelSection, architecture: ModelArchitecture, fleet: TrainingHardware
) -> float:
    """Return the seconds per generated token: each device reads its part of the weights once."""
    size = 2 if model.precision == "bf16" else 4
    weights = size * (architecture.text.parameters + architecture.vision.parameters)
    return weights / fleet.device.bytes_per_s / fleet.count


def _list_memory_remedies(
    recipe: TrainRecipe, memory: DeviceMemoryEstimate, fleet: TrainingHardware
) -> tuple[str, ...]:
    """Return the changes that reduce the memory, least intrusive first; empty if it is sufficient."""
    if memory.total <= fleet.device.memory_gib:
        return ()
    model, optimise = recipe.model, recipe.optimise
    remedies = []
    if not model.gradient_checkpointing:
        remedies.append("Set model.gradient_checkpointing=true")
    if optimise.batch_size > 1:
        accumulate = optimise.batch_size * optimise.accumulate
        remedies.append(
            f"Set optimise.batch_size=1 and optimise.accumulate={accumulate}: the same steps"
        )
    states = memory.weights + memory.gradients + memory.optimiser
    if _select_device_strategy(recipe.devices, fleet) != "fsdp" and states > memory.activations:
        remedies.append("Share the states: devices.strategy=fsdp with several devices")
    elif states > memory.activations:
        remedies.append("Take more devices: fsdp divides the states by them")
    if model.tune == "full":
        remedies.append("Train an adapter: model.tune=lora")
    if memory.activations + memory.scores > fleet.device.memory_gib / 4:
        remedies.append("Show less: a lower data.condition.max_pixels or fewer frames")
    return (*remedies, f"Take a device with {memory.total:.0f} GiB or more")


def _list_estimate_assumptions(
    recipe: TrainRecipe,
    architecture: ModelArchitecture,
    fleet: TrainingHardware,
    utilisation: float,
) -> tuple[str, ...]:
    model, family = recipe.model, UTILISATION[recipe.model.family]
    is_given = fleet.utilisation is not None
    source = "as given" if is_given else f"for {model.family}: {family.reason}"
    return (
        f"size of the model: {architecture.known_from}",
        (
            "operations: 6 x parameters x tokens, 4 under an adapter, 2 where frozen, and attention; "
            "one forward more with gradient checkpointing"
        ),
        f"devices reach {utilisation:.1%} of {fleet.device.peak(model.precision) / 1e12:,.0f} TFLOP/s, {source}",
        (
            f"decoding: {DECODED_PER_S / 1e6:,.0f} million pixels a second and core, the whole clip each time, "
            f"{max(1, recipe.optimise.workers)} workers a device; it overlaps, so the slower of both counts"
        ),
        (
            "memory: 16 bytes for a parameter that learns, 2 (bf16) or 4 for one that does not; the largest "
            "example, padding of a batch not counted"
        ),
        (
            "frames as shown, then the family's rule of its published processor; a checkpoint with other "
            "bounds sees other sizes"
        ),
        "text: 1 token for 4 characters, instants 1 for each",
    )
