"""Settings of a run, from defaults, a TOML file and options; unknown keys are rejected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.input_files import read_toml_file
from unreel.core.question import Condition
from unreel.protocols.protocol import Protocol, get_protocol
from unreel.recipes.validation import (
    MAX_PARTS,
    Count,
    RecipeSection,
    Seed,
    Text,
    drop_unset_keys,
    validate_recipe_sections,
)
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import LOCAL

_REVIEWER = "reviewer"
_FRESH = frozenset({"box_space", "gpus", "parser", "command", "url", "score_means", "threshold"})
"""Reviewer keys that are stored only if set."""


class EvalRecipe(RecipeSection):
    """Settings that determine the questions of a run. They are stored with the run."""

    benchmark: Text
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MAX_PARTS)
    split: Text | None = None
    limit: Count | None = None
    """Maximum number of clips."""
    choice: Literal["balanced", "first"] = "balanced"
    """Sampling rule of `limit`: balanced over labels and creators and drawn by `seed`, or the first clips."""
    protocol: Text
    reviewer: ReviewerSection
    """Settings of the reviewer; their keys are also valid at the top level."""
    condition: Annotated[
        tuple[ConditionSection, ...],
        Field(min_length=1, max_length=MAX_PARTS, validate_default=True),
    ] = (ConditionSection(),)
    seed: Seed = 0

    @classmethod
    def known_keys(cls) -> list[str]:
        return [*(name for name in cls.model_fields), *ReviewerSection.model_fields]

    @model_validator(mode="before")
    @classmethod
    def _gather_reviewer(cls, values: dict[str, Any]) -> dict[str, Any]:
        loose = {name: values[name] for name in ReviewerSection.model_fields if name in values}
        section = values.get(_REVIEWER, {})
        if not isinstance(section, Mapping):
            return values  # its own validation reports the error
        remaining = {name: value for name, value in values.items() if name not in loose}
        return remaining | {_REVIEWER: {**section, **loose}}

    @field_validator("benchmark", mode="before")
    @classmethod
    def _benchmark_can_be_written_down(cls, benchmark: object) -> object:
        try:
            str(benchmark).encode()
        except UnicodeEncodeError as error:
            raise InvalidSettingError(
                "benchmark", f"the path {benchmark!a} is not UTF-8", "Rename the folder"
            ) from error
        return benchmark

    @field_validator("protocol")
    @classmethod
    def _protocol_is_known(cls, name: str) -> str:
        return get_protocol(name).instrument.protocol

    @field_validator("condition")
    @classmethod
    def _resolve_conditions(
        cls, sections: tuple[ConditionSection, ...], info: ValidationInfo
    ) -> tuple[ConditionSection, ...]:
        if not {"protocol", _REVIEWER} <= info.data.keys():
            return sections  # one of them is invalid, and its own error is reported
        instrument, reviewer = get_protocol(info.data["protocol"]), info.data[_REVIEWER]
        return tuple(reviewer.resolve(section, instrument) for section in sections)

    @model_validator(mode="after")
    def _thinking_can_be_carried_out(self) -> "EvalRecipe":
        for section in self.condition:
            self.reviewer.require_thinking(section, self.instrument)
        return self

    @property
    def instrument(self) -> Protocol[Any, Any]:
        """Return the protocol at its current version."""
        return get_protocol(self.protocol)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions without duplicates."""
        return tuple(dict.fromkeys(section.as_condition() for section in self.condition))

    def stored(self) -> dict[str, Any]:
        """Return the recipe in the form that a run stores.

        The keys of the reviewer are at the top level; some of them are omitted unless they are set.
        """
        unused = {"choice"} if self.limit is None else set()
        document = self.model_dump(mode="json", exclude={_REVIEWER, *unused})
        described = self.reviewer.model_dump(mode="json")
        # A checkpoint has its own token limit.
        own = {"max_tokens"} if self.reviewer.model.startswith(LOCAL) else set()
        fresh = (_FRESH | own) - self.reviewer.model_fields_set
        return document | {name: value for name, value in described.items() if name not in fresh}


def resolve_eval_recipe(file: Path | None, flags: Mapping[str, Any]) -> EvalRecipe:
    """Build a run's recipe: set `flags` (not `None`) before the TOML `file`, then defaults."""
    written = {} if file is None else read_toml_file(file, "recipe")
    return validate_eval_recipe(written | drop_unset_keys(flags))


def validate_eval_recipe(values: object) -> EvalRecipe:
    """Build the recipe from `values`, and raise an error for the first invalid value."""
    return validate_recipe_sections(EvalRecipe, values, typed=_format_cli_option)


def _format_cli_option(key: str) -> str:
    return key.upper() if key == "benchmark" else f"--{key.rpartition('.')[2]}"
