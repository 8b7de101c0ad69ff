"""Recipe of a training: defaults, then a TOML file, then changes; unknown keys are rejected."""

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.input_files import read_toml_file
from unreel.core.question import Condition
from unreel.protocols.protocol import Protocol, get_protocol
from unreel.recipes.validation import (
    MAX_PARTS,
    Count,
    MaxTokens,
    RecipeNumberUnit,
    RecipeSection,
    Seed,
    Text,
    apply_recipe_change,
    validate_recipe_sections,
)
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.endpoint.model_families import get_model_family
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    FamilyName,
    Form,
    ProtocolTrainingCondition,
)

_SHIPPED = files("unreel.training") / "recipes"
_TOML = ".toml"

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)]


class TrainedModelSection(RecipeSection):
    """`[model]`: the model to train."""

    name: Text
    """Folder of the model, or its name on the Hugging Face Hub; a model of the Hub must be downloaded already."""
    revision: Text | None = None
    family: FamilyName
    tune: Literal["full", "lora"] = "lora"
    lora_rank: Count = 8
    lora_alpha: Count = 16
    lora_dropout: Share = 0.05
    vision: Literal["trained", "frozen"] = "frozen"
    """Whether the vision encoder and its projection to the language model are trained too."""
    precision: Literal["bf16", "fp32"] = "bf16"
    gradient_checkpointing: bool = True


class TrainingDataSection(RecipeSection):
    """`[[data]]`: a benchmark with ground truth, and its questions."""

    benchmark: Text | None = None
    """Path of the benchmark, a folder or a table. Shipped recipes omit it: set it with `--data PATH`."""
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MAX_PARTS)
    split: Text | None = "train"
    """Split that is trained on; a benchmark without splits is used completely."""
    protocol: Text
    condition: Annotated[ConditionSection, Field(validate_default=True)] = ConditionSection()
    weight: Positive = 1.0
    """Number of times that each example occurs per epoch: 2 is twice, 0.5 is once in every second epoch."""

    @field_validator("protocol")
    @classmethod
    def _protocol_is_known(cls, name: str) -> str:
        return get_protocol(name).instrument.protocol

    @field_validator("condition")
    @classmethod
    def _check_condition(cls, section: ConditionSection, info: ValidationInfo) -> ConditionSection:
        if "protocol" not in info.data:
            return section  # the protocol is invalid, which is reported by itself
        instrument = get_protocol(info.data["protocol"])
        resolved = section.resolved(instrument)
        if resolved.prompt not in instrument.wording.teaches:
            raise UnknownNameError(
                f"{instrument.instrument.protocol} prompt that can be taught",
                resolved.prompt,
                sorted(instrument.wording.teaches),
            )
        if resolved.audio == "on":
            raise InvalidSettingError(
                "condition.audio", "no trainable model family accepts sound", "Leave it off"
            )
        if resolved.thinking != "default":
            raise InvalidSettingError(
                "condition.thinking",
                "a checkpoint answers as it was trained",
                "Leave it at its default",
            )
        return resolved

    @property
    def path(self) -> Path:
        """Return the path of the benchmark; raise `InvalidSettingError` if the recipe names none."""
        if self.benchmark is None:
            raise InvalidSettingError(
                "data.benchmark",
                "the recipe leaves it to the user of the data",
                "Name the folder or table: --data PATH, or --set data.benchmark=PATH",
            )
        return Path(self.benchmark)

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """Return the protocol at its current version."""
        return get_protocol(self.protocol)

    @property
    def resolved_condition(self) -> Condition:
        """Return the condition of the questions about this data."""
        return self.condition.as_condition()


class UnseenBenchmarkSection(RecipeSection):
    """`[[holdout.benchmarks]]`: a benchmark that the checkpoint will be scored on."""

    benchmark: Text | None = None
    """Path of the benchmark, a folder or a table; unset: the benchmarks of `[[data]]`, of which `split` is scored."""
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MAX_PARTS)
    split: Text | None = None

    @model_validator(mode="after")
    def _names_something(self) -> "UnseenBenchmarkSection":
        if self.benchmark is None and self.split is None:
            raise InvalidSettingError(
                "holdout.benchmarks",
                "names neither a benchmark nor a split",
                "Name at least one of them",
            )
        return self


def _wrap_in_list(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


def _convert_to_unseen_sections(value: object) -> object:
    """Convert each entry to a section; a plain string is the path of a benchmark."""
    listed = _wrap_in_list([value] if isinstance(value, str) else value)
    if not isinstance(listed, list | tuple):
        return listed
    return [{"benchmark": entry} if isinstance(entry, str) else entry for entry in listed]


class TrainingHoldoutSection(RecipeSection):
    """`[holdout]`: data excluded from training, and the benchmarks that must stay unseen."""

    share: Share = 0.1
    """Fraction of the source videos (scenes) that is held out for validation, if `split` is not set."""
    split: Text | None = None
    """Split of the benchmarks of `[[data]]` that is held out for validation instead of `share`."""
    benchmarks: Annotated[
        tuple[UnseenBenchmarkSection, ...],
        Field(max_length=MAX_PARTS),
        BeforeValidator(_convert_to_unseen_sections),
    ] = ()
    """Benchmarks that the checkpoint will be scored on: training on their clips, or near-duplicates, is an error."""
    near_duplicates: bool = True
    """Whether clips with the same content, even re-encoded, stay on one side; if so, every clip is decoded once."""


class OptimiserSection(RecipeSection):
    """`[optimise]`: settings of the optimiser."""

    epochs: Positive = 1.0
    max_steps: Count | None = None
    batch_size: Count = 1
    """Number of examples that one device processes in one batch."""
    accumulate: Count = 1
    learning_rate: Positive = 1e-5
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    betas: tuple[Share, Share] = (0.9, 0.999)
    max_grad_norm: Positive = 1.0
    workers: Annotated[int, Field(ge=0, le=256)] = 2
    """Number of processes per device that decode clips during training; 0 decodes in the training process."""


class ValidationSection(RecipeSection):
    """`[watch]`: validation during training."""

    every: Annotated[Count, RecipeNumberUnit("steps")] = 100
    save_every: Annotated[Count, RecipeNumberUnit("steps")] = 100
    keep: Count = 2
    """Number of newest checkpoints that are kept; the best checkpoint is kept in addition."""
    clips: Count = 64
    """Maximum number of held-out questions that the model answers in each validation."""
    patience: Count | None = None
    """Number of consecutive validations without a lower held-out loss after which training stops; unset: never."""
    log_to: Annotated[tuple[Literal["tensorboard", "wandb"], ...], Field(max_length=2)] = ()


class AnswerRewardSection(RecipeSection):
    """`[reward]`: rewards of sampled answers, after supervised training."""

    method: Literal["grpo"] = "grpo"
    label: Annotated[Share, Field(gt=0)] = 0.4
    box: Share = 0.2
    onset: Share = 0.2
    span: Share = 0.0
    format: Share = 0.2
    false_alarm: Annotated[float, Field(ge=1, le=100)] = 1.0
    """Cost of a false alarm relative to a miss. Above 1, always answering real earns more than always generated."""
    onset_within: Annotated[Share, Field(gt=0)] = 0.25
    """Distance from the true onset at which an onset earns nothing, as a fraction of the clip's length."""
    bar: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Closeness (IoU) above which evidence raises the reward; unset: the training clips' best constant answer's."""
    generations: Annotated[int, Field(ge=2, le=256)] = 8
    temperature: Positive = 1.0
    kl: Annotated[float, Field(ge=0, le=10)] = 0.0
    """Weight of the penalty on the distance from the initial checkpoint; 0: no penalty."""


class PublishedResultSection(RecipeSection):
    """`[published]`: the published result that the recipe reproduces."""

    source: Text
    """Paper, and name of the table in `benchmarks/published` that contains the result."""
    row: Text
    """Name of the row in that table."""
    figures: dict[str, float] = Field(min_length=1, max_length=MAX_PARTS)
    """Published values by column of that table."""


class TrainingDevicesSection(RecipeSection):
    """`[devices]`: distribution of the work over several devices."""

    strategy: Literal["single", "ddp", "fsdp"] = "single"
    count: Count = 1
    nodes: Count = 1


class TrainRecipe(RecipeSection):
    """Recipe of a training: all settings that determine its result; stored with the checkpoint."""

    name: Text
    seed: Seed = 0
    input: Form = "frames"
    max_tokens: MaxTokens = 512
    """Maximum number of tokens of an answer that the model generates in validation and reward training."""
    model: TrainedModelSection
    data: Annotated[
        tuple[TrainingDataSection, ...],
        Field(min_length=1, max_length=MAX_PARTS),
        BeforeValidator(_wrap_in_list),
    ]
    holdout: TrainingHoldoutSection = TrainingHoldoutSection()
    optimise: OptimiserSection = OptimiserSection()
    watch: ValidationSection = ValidationSection()
    devices: TrainingDevicesSection = TrainingDevicesSection()
    reward: AnswerRewardSection | None = None
    """Rewards of sampled answers; unset: supervised training only."""
    published: PublishedResultSection | None = None

    @property
    def input_spec(self) -> CheckpointInputSpec:
        """Return the input format of the model after this training, with each trained protocol once."""
        instruments = {
            data.protocol: ProtocolTrainingCondition(
                protocol=data.protocol,
                version=data.instrument.instrument.version,
                condition=data.condition,
            )
            for data in reversed(self.data)
        }
        return CheckpointInputSpec(
            family=self.model.family,
            input=self.input,
            box_space=get_model_family(self.model.family).boxes,
            instruments=tuple(reversed(instruments.values())),
            max_tokens=self.max_tokens,
        )


def validate_train_recipe(values: object) -> TrainRecipe:
    """Validate `values` and return the training recipe; raise `UnreelError` if one is invalid."""
    return validate_recipe_sections(TrainRecipe, values, typed=lambda key: f"--set {key}=VALUE")


def list_shipped_recipes() -> tuple[str, ...]:
    """Return the names of the recipes in this package."""
    names = (file.name for file in _SHIPPED.iterdir())
    return tuple(sorted(name.removesuffix(_TOML) for name in names if name.endswith(_TOML)))


def read_train_recipe(
    named: str | Path | Mapping[str, Any],
    *,
    data: Sequence[str | Path] = (),
    changes: Sequence[str] = (),
) -> TrainRecipe:
    """Read a training recipe from a file, or the shipped recipe of that name.

    `data` replaces the benchmarks of `[[data]]` in order; a change is `section.key=VALUE` in TOML.
    """
    if isinstance(named, Mapping):
        values = deepcopy(dict(named))
    elif Path(named).suffix == _TOML or Path(named).exists():
        values = read_toml_file(Path(named), "recipe")
    elif str(named) in list_shipped_recipes():
        values = tomllib.loads((_SHIPPED / f"{named}{_TOML}").read_text(encoding="utf-8"))
    else:
        names = [*list_shipped_recipes(), "a path of a .toml file"]
        raise UnknownNameError("recipe", str(named), names)
    sections = _wrap_in_list(values.get("data", []))
    if data and (not isinstance(sections, list) or len(data) > len(sections)):
        raise InvalidSettingError(
            "--data",
            f"named {len(data)} times, more often than the recipe has [[data]]",
            "Name one path for each, in their order",
        )
    for section, path in zip(sections if isinstance(sections, list) else (), data, strict=False):
        section["benchmark"] = str(path)
    for change in changes:
        apply_recipe_change(change, values)
    return validate_train_recipe(values)
