"""Time spans in integer microseconds, and conversion between seconds and microseconds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from unreel.core.errors import InvalidValueError

MICROSECONDS = 1_000_000


def convert_to_microseconds(seconds: Fraction | float) -> int:
    """Round `seconds` to whole microseconds; ties go to even."""
    exact = seconds if type(seconds) is Fraction else Fraction(seconds)
    quotient, remainder = divmod(exact.numerator * MICROSECONDS, exact.denominator)
    twice = 2 * remainder - exact.denominator
    return quotient + (twice > 0 or (twice == 0 and quotient % 2 == 1))


def format_seconds(at_us: int) -> str:
    """Format a time or a duration in seconds with two decimals."""
    return f"{at_us / MICROSECONDS:.2f} s"


def add_seconds_fields(value: Any) -> Any:
    """Return a JSON document with a field such as `start_s` added for each field such as `start_us`."""
    if isinstance(value, list):
        return [add_seconds_fields(part) for part in value]
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = {}
    for key, part in value.items():
        fields[key] = add_seconds_fields(part)
        seconds = f"{key[:-3]}_s"
        if key.endswith("_us") and type(part) is int and seconds not in value:
            fields[seconds] = part / MICROSECONDS
    return fields


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    """Time span of a clip from `start_us` (inclusive) to `end_us` (exclusive)."""

    start_us: int
    end_us: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_us < self.end_us:
            raise InvalidValueError(
                f"span must satisfy 0 <= start < end, not {self.start_us}..{self.end_us} us "
                f"({format_seconds(self.start_us)} to {format_seconds(self.end_us)}). "
                "Give the first instant inside and the first one after it"
            )

    @property
    def length_us(self) -> int:
        """Return the length of the span."""
        return self.end_us - self.start_us

    def overlap_us(self, other: "TimeSpan") -> int:
        """Return the microseconds that both spans share; 0 if the spans only touch."""
        return max(0, min(self.end_us, other.end_us) - max(self.start_us, other.start_us))

    def iou(self, other: "TimeSpan") -> float:
        """Compute the temporal IoU: shared time divided by the time of the union."""
        shared = self.overlap_us(other)
        return shared / (self.length_us + other.length_us - shared)
