"""Answer of a reviewer; a `Failure` replaces a missing one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that an answer cost, as the server counted them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The raw text, exactly as it came."""

    text: str
    latency_us: int | None = None
    usage: Usage | None = None
