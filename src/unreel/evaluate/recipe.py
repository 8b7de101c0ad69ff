"""What a run asks and how: defaults, then a TOML file, then flags; unknown keys are refused."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.question import Condition
from unreel.media.sampling import parse_plan
from unreel.protocols.protocol import Protocol, protocol


class Section(BaseModel):
    """Closed and unchangeable."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ConditionSection(Section):
    """`[[condition]]`: how questions are put. A run may carry several."""

    sampling: str = "uniform-8"
    audio: Literal["off", "on"] = "off"
    watermark: Literal["kept", "removed"] = "kept"
    thinking: Literal["default", "off", "on"] = "default"
    prompt: str = "paper"

    def as_condition(self) -> Condition:
        """The condition, with the sampling plan's one spelling."""
        plan = str(parse_plan(self.sampling))
        return Condition(**(self.model_dump() | {"sampling": plan}))


class Recipe(Section):
    """Everything that decides a run's rows. It is stored with the run."""

    benchmark: str
    layout: str | None = None
    mapping: dict[str, str] = {}
    split: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    """Ask about the first clips only."""
    protocol: Literal["trace", "realism", "reality", "preference"]
    model: str
    """`provider/name`, `provider/name@URL`, or a floor: see `unreel.reviewers.roster`."""
    condition: Annotated[tuple[ConditionSection, ...], Field(min_length=1)] = (ConditionSection(),)
    recorded: str | None = None
    """The answers that the model `recorded` replays."""
    max_tokens: Annotated[int, Field(ge=1)] = 2048
    show: Literal["frames", "clip"] = "frames"
    family: str | None = None
    deadline_s: Annotated[float, Field(gt=0)] = 120.0
    max_connections: Annotated[int, Field(ge=1, le=1024)] = 16
    max_requests: Annotated[int, Field(ge=1)] | None = None
    max_cost_usd: Annotated[Decimal, Field(gt=0)] | None = None
    prices: str | None = None
    """A TOML file of prices, needed for a cap on cost."""
    seed: int = 0

    @model_validator(mode="after")
    def _conditions_are_possible(self) -> "Recipe":
        for section in self.condition:
            self.instrument.prompt(section.prompt)
            section.as_condition()
            if section.watermark == "removed":
                setting, problem = "watermark", "no clips with their watermark removed are known"
                remedy = "Ask with watermark=kept; `unreel curate` will make the others"
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


def resolve_recipe(file: Path | None, flags: Mapping[str, Any]) -> Recipe:
    """Defaults below `file` below `flags`; a flag that is None was not given."""
    given = {} if file is None else _read(file)
    merged = given | {name: value for name, value in flags.items() if value is not None}
    return check_recipe(merged)


def check_recipe(values: Mapping[str, Any]) -> Recipe:
    """The recipe that `values` make, or the first thing that is wrong with them."""
    try:
        return Recipe.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(map(str, first["loc"])) or "recipe"
        remedy = f"Known settings: {', '.join(Recipe.model_fields)}"
        raise InvalidSettingError(setting, first["msg"].lower(), remedy) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableSourceError(str(file), f"no recipe ({error})", "Write TOML") from error
