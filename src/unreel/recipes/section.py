"""Base of recipe sections: closed, immutable, and with bounds for every field."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
)

from unreel.core.errors import InvalidSettingError

LONGEST_TEXT: Final = 4096
MOST_PARTS: Final = 256
"""Conditions, sources, columns: people write them down one by one."""
_LONGEST_NUMBER: Final = 40
LARGEST: Final = 10**12


@dataclass(frozen=True, slots=True)
class RecipeNumberUnit:
    """Unit of a number in a recipe, for its documentation."""

    name: str


class RecipeSection(BaseModel):
    """Base class of recipe sections: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def known_keys(cls) -> list[str]:
        """Return the keys that are allowed in this section."""
        return list(cls.model_fields)


def _parse_exact_number(value: object) -> Fraction:
    """Parse a number exactly as written in a recipe: 0.1 is a tenth, 30000/1001 is a fraction."""
    text = str(value) if isinstance(value, int | float | str | Fraction) else ""
    # An exponent would let a few letters stand for a number of a gigabyte.
    if isinstance(value, bool) or len(text) > _LONGEST_NUMBER or "e" in text.lower():
        msg = "is no plain number"
        raise ValueError(msg)
    try:
        return Fraction(text)
    except ZeroDivisionError as error:
        msg = "divides by zero"
        raise ValueError(msg) from error


def _require_single_line(text: str, info: ValidationInfo) -> str:
    if not text.isprintable() or text != text.strip():
        setting, problem = info.field_name or "name", f"{text!a} does not fit on a line"
        raise InvalidSettingError(setting, problem, "Write a name without breaks or margins")
    return text


Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Line = Annotated[Text, Field(min_length=1), AfterValidator(_require_single_line)]
"""A name as boards and tables show it."""
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
MaxTokens = Annotated[int, Field(ge=1, le=10_000_000), RecipeNumberUnit("tokens")]
Connections = Annotated[int, Field(ge=1, le=1024)]
Deadline = Annotated[
    float, Field(gt=0, le=86_400, allow_inf_nan=False), RecipeNumberUnit("seconds")
]
Exact = Annotated[Fraction, BeforeValidator(_parse_exact_number)]
Seconds = Annotated[Exact, Field(ge=0, le=LARGEST), RecipeNumberUnit("seconds")]
