"""What a training does: defaults, then a TOML file, then changes; unknown keys are refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from unreel.core.question import Condition
from unreel.protocols.protocol import Protocol, protocol
from unreel.recipes.check import check_sections
from unreel.recipes.section import MOST_PARTS, Count, MaxTokens, Section, Seed, Text, Unit
from unreel.reviewers.condition import ConditionSection
from unreel.reviewers.local.taught import FamilyName, Form

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)]


class ModelSection(Section):
    """`[model]`: what is trained."""

    name: Text
    """A folder, or a name that transformers knows."""
    revision: Text | None = None
    family: FamilyName
    tune: Literal["full", "lora"] = "lora"
    lora_rank: Count = 8
    lora_alpha: Count = 16
    lora_dropout: Share = 0.05
    vision: Literal["trained", "frozen"] = "frozen"
    """Whether the part that sees learns too."""
    precision: Literal["bf16", "fp32"] = "bf16"
    gradient_checkpointing: bool = True


class ExpectedSection(Section):
    """`[[data.expected]]`: clips as a benchmark's makers count them, for a plan that is made without it."""

    examples: Count
    """Annotation rows, or clips where each is one question."""
    seconds: Positive
    """Of a clip."""
    width: Annotated[Count, Unit("pixels")]
    height: Annotated[Count, Unit("pixels")]
    rate: Annotated[Positive, Unit("frames a second")] = 24.0
    answer_tokens: Annotated[MaxTokens, Unit("tokens")] = 64


class DataSection(Section):
    """`[[data]]`: a benchmark with truth, and what is asked of it."""

    benchmark: Text
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MOST_PARTS)
    split: Text | None = "train"
    protocol: Text
    condition: ConditionSection = ConditionSection()
    weight: Positive = 1.0
    """How often its examples are drawn, against those of the other data."""
    expected: Annotated[tuple[ExpectedSection, ...], Field(max_length=MOST_PARTS)] = ()
    """What `unreel train plan` counts with where the benchmark is not here."""

    @field_validator("protocol")
    @classmethod
    def _protocol_is_known(cls, name: str) -> str:
        return protocol(name).instrument.protocol

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """The protocol at its current version."""
        return protocol(self.protocol)

    @property
    def asked(self) -> Condition:
        """How its questions are put."""
        return self.condition.resolved(self.instrument).as_condition()


class HoldoutSection(Section):
    """`[holdout]`: what is kept from training, and the benchmarks that must stay unseen."""

    share: Share = 0.1
    """Of the source videos, where no split is named."""
    split: Text | None = None
    """A split of the data's own benchmarks that is held out instead."""
    benchmarks: Annotated[tuple[Text, ...], Field(max_length=MOST_PARTS)] = ()
    """What the checkpoint will be scored on: no clip of them, nor a near-duplicate, may be trained on."""
    near_duplicates: bool = True


class OptimiseSection(Section):
    """`[optimise]`: how it learns."""

    epochs: Positive = 1.0
    max_steps: Count | None = None
    batch_size: Count = 1
    """Examples that one device holds at once."""
    accumulate: Count = 1
    learning_rate: Positive = 1e-5
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    betas: tuple[Share, Share] = (0.9, 0.999)
    max_grad_norm: Positive = 1.0
    workers: Annotated[int, Field(ge=0, le=256)] = 2
    """Processes that decode while the model learns."""


class WatchSection(Section):
    """`[watch]`: what is looked at while it learns."""

    every: Annotated[Count, Unit("steps")] = 100
    save_every: Annotated[Count, Unit("steps")] = 100
    keep: Count = 2
    """Checkpoints."""
    clips: Count = 64
    """Held-out clips that are asked each time."""
    patience: Count | None = None
    """Looks without a better held-out loss after which it stops."""
    log_to: Annotated[tuple[Literal["tensorboard", "wandb"], ...], Field(max_length=2)] = ()


class RewardSection(Section):
    """`[reward]`: what an answer earns after the supervised part; see `train.rewards`."""

    method: Literal["grpo", "rejection"] = "grpo"
    label: Share = 0.4
    box: Share = 0.2
    onset: Share = 0.2
    span: Share = 0.0
    format: Share = 0.2
    false_alarm: Annotated[float, Field(ge=1, le=100)] = 2.0
    """What calling a real clip generated costs, against a miss."""
    generations: Annotated[int, Field(ge=2, le=256)] = 8
    temperature: Positive = 1.0
    kl: Annotated[float, Field(ge=0, le=10)] = 0.0


class PublishedSection(Section):
    """`[published]`: the number that the recipe reruns."""

    source: Text
    figure: Text
    minutes: Positive | None = None
    devices: Text | None = None


class DevicesSection(Section):
    """`[devices]`: how several devices share the work."""

    strategy: Literal["single", "ddp", "fsdp"] = "single"
    count: Count = 1
    nodes: Count = 1


def _listed(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


class TrainRecipe(Section):
    """Everything that decides what a training gives. It is stored with the checkpoint."""

    name: Text
    seed: Seed = 0
    input: Form = "frames"
    max_tokens: MaxTokens = 512
    """Of an answer."""
    model: ModelSection
    data: Annotated[
        tuple[DataSection, ...],
        Field(min_length=1, max_length=MOST_PARTS),
        BeforeValidator(_listed),
    ]
    holdout: HoldoutSection = HoldoutSection()
    optimise: OptimiseSection = OptimiseSection()
    watch: WatchSection = WatchSection()
    devices: DevicesSection = DevicesSection()
    reward: RewardSection | None = None
    """Absent: supervised training alone."""
    published: PublishedSection | None = None


def check_recipe(values: object) -> TrainRecipe:
    """The recipe that `values` make, or the first thing that is wrong with them."""
    return check_sections(TrainRecipe, values, typed=lambda key: f"--set {key}=VALUE")
