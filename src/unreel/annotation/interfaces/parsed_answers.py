"""Parse submitted results by control and box. The server validates nothing, so this module does.

Everything here is bounded: sizes are looked at before contents, and nothing is followed into depth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from unreel.annotation.interfaces.screens import ScreenControl
from unreel.annotation.judgements import QuarantinedSubmission, QuarantineReason
from unreel.core.errors import InvalidValueError
from unreel.core.safe_text import sanitise_lines

MOST_RESULTS: Final = 2_000
LONGEST_TEXT: Final = 20_000
MOST_LINES: Final = 200
_LONGEST_DETAIL: Final = 80
_RELATION: Final = "relation"
_LONGEST_ID: Final = 200

Answers = Mapping[str, dict[str, Any]]
"""The value of each control that was answered, by the control's name."""


class RefusedError(InvalidValueError):
    """Raised if a submission is no judgement; `quarantined` holds the reason."""

    def __init__(self, reason: QuarantineReason, detail: str) -> None:
        self.quarantined = QuarantinedSubmission(reason, detail)
        super().__init__(str(self.quarantined))


@dataclass(frozen=True, slots=True)
class ParsedAnswers:
    """The answers about the whole clip, and those about each box."""

    whole: Answers
    regions: Mapping[str, Answers]
    """By the box's id, in the order of their first mention."""


def refuse(reason: QuarantineReason, detail: str) -> NoReturn:
    """Raise an error for an invalid judgement."""
    raise RefusedError(reason, detail)


def cut(found: object) -> str:
    """Format an untrusted value for a message: escaped and shortened."""
    told = ascii(found[:_LONGEST_DETAIL]) if isinstance(found, str) else type(found).__name__
    return told[:_LONGEST_DETAIL]


def sort_out(results: object, controls: Mapping[str, ScreenControl]) -> ParsedAnswers:
    """Parse the answers in an annotation's list of results.

    Raises:
        RefusedError: The list is invalid, or answers a question that was not asked.
    """
    if not isinstance(results, list):
        refuse(QuarantineReason.MALFORMED, f"no list of results but {cut(results)}")
    if len(results) > MOST_RESULTS:
        detail = f"{len(results)} results, more than {MOST_RESULTS}"
        refuse(QuarantineReason.TOO_LARGE, detail)
    whole: dict[str, dict[str, Any]] = {}
    regions: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        if isinstance(result, dict) and result.get("type") == _RELATION:
            continue  # lines between boxes: no screen asks for them, and they say nothing of any box
        control, value = _parse_control_value(result, controls)
        place = regions.setdefault(_parse_region_id(result), {}) if control.per_region else whole
        if control.name in place:
            refuse(QuarantineReason.MALFORMED, f"{control.name} is answered twice")
        place[control.name] = value
    return ParsedAnswers(whole, regions)


def get_choices(answers: Answers, control: ScreenControl) -> tuple[str, ...]:
    """Return the selected choices of a control; empty if the control was not answered."""
    words = answers.get(control.name, {}).get("choices", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        refuse(QuarantineReason.MALFORMED, f"{control.name} holds no list of words")
    unknown = [word for word in words if word not in control.words]
    if unknown:
        detail = f"{control.name} knows no {cut(unknown[0])}"
        refuse(QuarantineReason.UNKNOWN_WORD, detail)
    if len(set(words)) < len(words):
        refuse(QuarantineReason.MALFORMED, f"{control.name} names a word twice")
    if len(words) > 1 and not control.several:
        refuse(QuarantineReason.CONTRADICTORY, f"{control.name} has {len(words)} answers")
    return tuple(words)


def require_choice(answers: Answers, control: ScreenControl) -> str:
    """Return the selected choice of a required control."""
    words = get_choices(answers, control)
    if not words:
        refuse(QuarantineReason.MISSING, f"{control.name} is not answered")
    return words[0]


def get_text(answers: Answers, control: ScreenControl) -> str:
    """Return a control's text, with control characters replaced; "" if no text was entered."""
    text = answers.get(control.name, {}).get("text", [])
    lines = [text] if isinstance(text, str) else text
    if not isinstance(lines, list):
        refuse(QuarantineReason.MALFORMED, f"{control.name} holds no text")
    if len(lines) > MOST_LINES:
        refuse(QuarantineReason.TOO_LARGE, f"{control.name} has {len(lines)} texts")
    if not all(isinstance(line, str) for line in lines):
        refuse(QuarantineReason.MALFORMED, f"{control.name} holds no text")
    if sum(map(len, lines)) > LONGEST_TEXT:
        refuse(QuarantineReason.TOO_LARGE, f"{control.name} is longer than {LONGEST_TEXT}")
    return sanitise_lines("\n".join(lines)).strip()


def _parse_control_value(
    result: object, controls: Mapping[str, ScreenControl]
) -> tuple[ScreenControl, dict[str, Any]]:
    if not isinstance(result, dict):
        refuse(QuarantineReason.MALFORMED, f"a result is {cut(result)}")
    name = result.get("from_name")
    control = controls.get(name) if isinstance(name, str) else None
    if control is None:
        refuse(QuarantineReason.UNKNOWN_WORD, f"the screen does not ask {cut(name)}")
    if result.get("to_name") != control.about:
        detail = f"{control.name} is about {cut(result.get('to_name'))}"
        refuse(QuarantineReason.UNKNOWN_WORD, detail)
    value = result.get("value")
    if result.get("type") != control.kind or not isinstance(value, dict):
        refuse(QuarantineReason.MALFORMED, f"{control.name} holds no {control.kind}")
    return control, value


def _parse_region_id(result: dict[str, Any]) -> str:
    region = result.get("id")
    if not isinstance(region, str) or not 0 < len(region) <= _LONGEST_ID:
        refuse(QuarantineReason.MALFORMED, f"a box's id is {cut(region)}")
    return region
