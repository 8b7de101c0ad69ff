"""What a run asks and how: defaults, then a TOML file, then flags; unknown keys are refused."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from unreel.core.document import read_toml
from unreel.core.errors import InvalidSettingError
from unreel.core.question import Condition
from unreel.engine.recipe import check_sections
from unreel.engine.section import (
    MOST_PARTS,
    Connections,
    Count,
    Deadline,
    MaxTokens,
    Section,
    Seed,
    Text,
)
from unreel.media.sampling import parse_plan
from unreel.protocols.protocol import Protocol, protocol
from unreel.reviewers.endpoint.families import Switch, family_of, switch_thinking
from unreel.reviewers.endpoint.providers import read_address
from unreel.reviewers.roster import REVIEWERS

PAPER: Final = "paper"
OFFLINE: Final = tuple(name for name in REVIEWERS.names() if name != "endpoint")
"""Reviewers that need no server."""


class ConditionSection(Section):
    """`[[condition]]`: how questions are put. A run may carry several."""

    sampling: Text = "uniform-8"
    audio: Literal["off", "on"] = "off"
    watermark: Literal["kept", "removed"] = "kept"
    thinking: Literal["default", "off", "on"] = "default"
    prompt: Text = PAPER

    def resolved(self, instrument: Protocol[Any, Any]) -> "ConditionSection":
        """The same with the sampling plan's one spelling, and a prompt that suits `thinking`.

        The paper's prompt may ask for thoughts: where none are wanted and no prompt is named, the
        first variant that asks for none takes its place.
        """
        prompt = self.prompt
        if "prompt" not in self.model_fields_set and self.thinking == "off":
            silent = (name for name, p in instrument.prompts.items() if not p.asks_to_think)
            prompt = next(silent, prompt)
        instrument.prompt(prompt)
        plan = str(parse_plan(self.sampling))
        return ConditionSection(**(self.model_dump() | {"sampling": plan, "prompt": prompt}))

    def as_condition(self) -> Condition:
        """The condition that a resolved section stands for."""
        return Condition(**self.model_dump())


class EvalRecipe(Section):
    """Everything that decides a run's rows. It is stored with the run."""

    benchmark: Text
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MOST_PARTS)
    split: Text | None = None
    limit: Count | None = None
    """Ask about the first clips only."""
    protocol: Literal["trace", "realism", "reality", "preference"]
    model: Text
    """`provider/name`, `provider/name@URL`, or a floor: see `unreel.reviewers.roster`."""
    condition: Annotated[
        tuple[ConditionSection, ...], Field(min_length=1, max_length=MOST_PARTS)
    ] = (ConditionSection(),)
    recorded: Text | None = None
    """The answers that the model `recorded` replays."""
    max_tokens: MaxTokens = 2048
    show: Literal["frames", "clip"] = "frames"
    family: Text | None = None
    deadline_s: Deadline = 120.0
    max_connections: Connections = 16
    max_requests: Count | None = None
    max_cost_usd: Annotated[Decimal, Field(gt=0, le=10**9)] | None = None
    prices: Text | None = None
    """A TOML file of prices, needed for a cap on cost."""
    seed: Seed = 0

    @field_validator("benchmark", mode="before")
    @classmethod
    def _benchmark_can_be_written_down(cls, benchmark: object) -> object:
        try:
            str(benchmark).encode()
        except UnicodeEncodeError as error:
            setting, problem = "benchmark", f"the path {benchmark!a} is not UTF-8"
            raise InvalidSettingError(setting, problem, "Rename the folder") from error
        return benchmark

    @field_validator("model")
    @classmethod
    def _model_is_known(cls, model: str) -> str:
        if "/" in model:
            read_address(model)
        elif model not in OFFLINE:
            setting, problem = "model", f"no reviewer is named {model!r}"
            remedy = (
                f"Write provider/name, for example openai/gpt-5, or one of: {', '.join(OFFLINE)}"
            )
            raise InvalidSettingError(setting, problem, remedy)
        return model

    @field_validator("condition")
    @classmethod
    def _resolve_conditions(
        cls, sections: tuple[ConditionSection, ...], info: ValidationInfo
    ) -> tuple[ConditionSection, ...]:
        if "protocol" not in info.data:
            return sections  # it is wrong itself, and said to be so
        instrument = protocol(info.data["protocol"])
        return tuple(section.resolved(instrument) for section in sections)

    @model_validator(mode="after")
    def _thinking_can_be_carried_out(self) -> "EvalRecipe":
        for section in self.condition:
            if section.thinking == "default":
                continue
            asked = self.instrument.prompt(section.prompt).asks_to_think
            problem = _thinking_problem(self, section.thinking, asked=asked)
            if problem is not None:
                setting = f"thinking={section.thinking} with prompt={section.prompt}"
                remedy = (
                    "Leave thinking at its default, name another prompt, or name the model's family "
                    "in the recipe"
                )
                raise InvalidSettingError(setting, problem, remedy)
        return self

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """The protocol at its current version."""
        return protocol(self.protocol)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, each once."""
        return tuple(dict.fromkeys(section.as_condition() for section in self.condition))


def _thinking_problem(recipe: EvalRecipe, thinking: Switch, *, asked: bool) -> str | None:
    if recipe.model == "recorded":
        return None  # whoever recorded the answers knows
    if "/" not in recipe.model:
        return f"{recipe.model} does not think" if thinking == "on" else None
    family = family_of(read_address(recipe.model), recipe.family)
    switched = switch_thinking(family, thinking, asked=asked)
    return switched if isinstance(switched, str) else None


def resolve_recipe(file: Path | None, flags: Mapping[str, Any]) -> EvalRecipe:
    """Defaults below `file` below `flags`; a flag that is None was not given."""
    given = {} if file is None else read_toml(file, "recipe")
    merged = given | {name: value for name, value in flags.items() if value is not None}
    return check_recipe(merged)


def check_recipe(values: object) -> EvalRecipe:
    """The recipe that `values` make, or the first thing that is wrong with them."""
    return check_sections(EvalRecipe, values, typed=_typed)


def _typed(key: str) -> str:
    return key.upper() if key == "benchmark" else f"--{key}"
