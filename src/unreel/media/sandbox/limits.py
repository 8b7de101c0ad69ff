"""Limits and usage of one file."""

from dataclasses import dataclass
from typing import Final

from unreel.core.errors import InvalidValueError

MIB: Final = 1024 * 1024
SMALLEST_MB: Final = 256
"""A warm child maps about 250 MB before it has read a byte: below this nothing decodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Resource limits for one file, after which its child is killed."""

    seconds: float = 15
    """Wall-clock time from the start of the child to the whole reply."""
    memory_mb: int = 512
    """Most memory that the child may hold, the decoder's own code included."""
    reply_bytes: int = 264 * MIB
    """Longest reply, or part of one: the header and all its bytes."""

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.memory_mb < SMALLEST_MB or self.reply_bytes <= 0:
            msg = (
                f"limits must be seconds > 0, memory_mb >= {SMALLEST_MB} and reply_bytes > 0, got "
                f"{self.seconds}, {self.memory_mb} and {self.reply_bytes}. Raise the one that is too low"
            )
            raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildUsage:
    """Resource usage of one child, from the kernel."""

    peak_mb: float
    """Largest resident set, with the pages that it shares with its zygote."""
    cpu_seconds: float
