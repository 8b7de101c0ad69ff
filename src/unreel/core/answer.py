"""What a reviewer gave back: text, or the reason why there is none."""

from dataclasses import dataclass

from unreel.core.failure import Failure


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question's outcome: a reply or a failure, never both and never neither."""

    question: str
    """Key of the question: `Question.key`."""
    outcome: Reply | Failure
