"""Requests of the tasks that only read a clip, and the text form of exact times.

The requests are validated without pydantic: loading pydantic would take half of the start time
of a process that only reads clips.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, NoReturn, TypeVar

from unreel.core.errors import InvalidSettingError
from unreel.core.span import MICROSECONDS
from unreel.media.bounds import MAX_PIXELS, MOST_S

LONGEST_SIDE: Final = 65_500
"""Neither JPEG nor any video codec goes further."""
MOST_INSTANTS: Final = 64
"""Frames that are asked for by their instants at once."""
INSTANTS: Final = "instants"
"""Name of the sampling for frames requested by timestamp."""


def write_exact(value: Fraction) -> str:
    """Return `value` as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Request of `probe`, `sound` and `scan`."""

    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        _require_integer("max_pixels", self.max_pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class FramesRequest:
    """Request of `frames`: the sampling plan, and the size of the frames."""

    sampling: str
    longest_side: int | None = None
    most_pixels: int | None = None
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not isinstance(self.sampling, str):
            _raise_invalid_field("sampling", self.sampling, "must be text")
        if self.longest_side is not None:
            _require_integer("longest_side", self.longest_side, most=LONGEST_SIDE)
        if self.most_pixels is not None:
            _require_integer("most_pixels", self.most_pixels)
        _require_integer("max_pixels", self.max_pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantsRequest:
    """Request of the task `instants`: the instants whose frames are requested."""

    at_us: Sequence[int]
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not isinstance(self.at_us, list) or not 1 <= len(self.at_us) <= MOST_INSTANTS:
            _raise_invalid_field(
                "at_us", self.at_us, f"must be a list of 1 to {MOST_INSTANTS} instants"
            )
        for instant in self.at_us:
            _require_integer("at_us", instant, least=0, most=MOST_S * MICROSECONDS)
        _require_integer("max_pixels", self.max_pixels)


Fields = TypeVar("Fields", ReadRequest, FramesRequest, InstantsRequest)


def read_fields(shape: type[Fields], request: Mapping[str, Any]) -> Fields:
    """Return `request` in its `shape`.

    Raises:
        InvalidSettingError: a field is unknown, missing or wrong.
    """
    known = ", ".join(field.name for field in fields(shape))
    try:
        return shape(**request)
    except TypeError as error:
        setting, remedy = "request", f"Known fields: {known}"
        raise InvalidSettingError(setting, str(error), remedy) from error


def _require_integer(field: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    # True and False are integers to Python.
    if type(value) is not int or value < least or (most is not None and value > most):
        bound = f"at least {least}" if most is None else f"{least} to {most}"
        _raise_invalid_field(field, value, f"must be an integer, {bound}")


def _raise_invalid_field(field: str, value: object, problem: str) -> NoReturn:
    raise InvalidSettingError(field, f"{problem}, got {value!r:.80}", "Correct it")
