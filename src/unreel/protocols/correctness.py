"""The rule by which one answer counts as correct, for pages, exports and data frames."""

from typing import Any, Final

from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import PreferenceVerdict, RealismVerdict

FAR_OFF: Final = 2
"""Points by which a realism score must miss people's to count as wrong."""


def get_decision(outcome: Any) -> Any:
    """Return the label, score or position that an answer gives; `None` if it gives none."""
    if isinstance(outcome, Failure):
        return None
    for part in ("label", "score", "real"):
        value = getattr(outcome, part, None)
        if isinstance(value, str | int):
            return value
    return None


def is_correct(outcome: Any, truth: Any, label: Label) -> bool | None:
    """Return whether an answer is right; `None` if there is none or it cannot be read.

    Args:
        outcome: Verdict that was read in the answer, or a failure.
        truth: The first truth of the question.
        label: Label of the clip, or of the first clip of a pair.
    """
    decision = get_decision(outcome)
    if decision is None:
        return None
    if isinstance(outcome, RealismVerdict):
        return bool(abs(int(decision) - truth.score) < FAR_OFF)
    return bool(decision == (truth if isinstance(outcome, PreferenceVerdict) else label))
