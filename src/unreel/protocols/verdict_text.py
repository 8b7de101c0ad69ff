"""Texts for verdicts: the display of a protocol's answers, and their requested format."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.core.judgement import Label
from unreel.core.safe_text import sanitise_line
from unreel.core.verdict import Unparsed
from unreel.protocols.space import BoxSpace

T = TypeVar("T")
V = TypeVar("V")
Part = TypeVar("Part")

NO_VERDICT: Final = "no verdict"
EVEN: Final = 0.5
"""A belief above this one is that the clip is generated."""


def _return_no_details(_verdict: object) -> tuple[tuple[str, str], ...]:
    return ()


def _return_no_answer(_truth: object, _prompt: str, _space: BoxSpace | None) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTexts(Generic[T, V]):
    """Texts of a protocol."""

    decides: str
    """The part of a verdict that it asks for before all else: without it there is no verdict."""
    say: Callable[[Any], str]
    """That part in a word or two."""
    right: Callable[[T], str]
    """The answer that a truth calls for, in the form that is asked for."""
    phrase: Callable[[Sequence[float], str], str]
    """The answer of someone who holds each clip shown to be generated with that probability, in the form
    that the prompt of that name asks for."""
    details: Callable[[V], Iterable[tuple[str, str]]] = _return_no_details
    """What else a readable verdict says, by name; what it excludes is named too."""
    teaches: frozenset[str] = frozenset()
    """The prompts whose answers follow from a truth alone; the others ask for what no truth holds."""
    write: Callable[[T, str, BoxSpace | None], str] = _return_no_answer
    """The whole answer to the prompt of that name, as `teach` gives it."""

    def teach(self, truth: T, prompt: str, space: BoxSpace | None) -> str:
        """Return the training answer for `truth`, in the format that the prompt called `prompt` requests.

        The strict parser reads the content of `truth` from this answer. Boxes are written in `space`.

        Raises:
            UnknownNameError: The prompt requests a part that no truth contains.
            InvalidValueError: `truth` lacks a requested part, or the format cannot express it.
        """
        if prompt not in self.teaches:
            kind = "prompt that can be taught"
            raise UnknownNameError(kind, prompt, sorted(self.teaches))
        return self.write(truth, prompt, space)

    def decision(self, verdict: V) -> Any:
        """Return the deciding part of the verdict: a label, a score, a position in a pair, or `Unparsed`."""
        return getattr(verdict, self.decides)

    def headline(self, verdict: V) -> str:
        """Return the verdict in one or two words, or a text saying that there is no verdict."""
        part = self.decision(verdict)
        return NO_VERDICT if isinstance(part, Unparsed) else self.say(part)


def format_label(label: Label) -> str:
    """Return `real` or `generated`."""
    return label.value


def format_or_missing(part: Part | Unparsed, write: Callable[[Part], str]) -> str:
    """Return the part as text, or the reason why it is missing."""
    if not isinstance(part, Unparsed):
        return write(part)
    found = f": {sanitise_line(part.found)!r}" if part.found else ""
    return f"not given ({part.reason.value}{found})"


def join_lines(text: str) -> str:
    """Return a person's text for training, with line breaks and repeated spaces as one space."""
    return " ".join(text.split())


def require_read_back(*, said: object, meant: object) -> None:
    """Refuse words that end or repeat a part of the form they stand in: no one could read them back."""
    if said != meant:
        msg = "its words repeat marks of the answer's form. Take such marks out of the text"
        raise InvalidValueError(msg)
