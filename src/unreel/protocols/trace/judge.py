"""The judge of explanations: its prompt, and the three scores that it may give."""

import re
from typing import Final

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.framing import on_one_line
from unreel.protocols.protocol import Prompt
from unreel.protocols.text import unparsed
from unreel.protocols.trace.prompts import SOURCE

JUDGE: Final = Prompt(
    text=(
        "You will receive a ground-truth explanation and a model-predicted explanation. Rate the "
        "predicted explanation on a scale of 0, 0.5, or 1 based on: - 0: Completely wrong or no "
        "explanation. - 0.5: Same object mentioned but incorrect reason. - 1: Both object and "
        "reason correctly identified. Respond with only the score."
    ),
    source=SOURCE,
)
EXAMPLES: Final = (
    ("The clock hands are floating without support.", "The clock face is tilted.", "0"),
    (
        "The bottle cap is warped at the hinge.",
        "The bottle cap is warped at the hinge.",
        "1",
    ),
    (
        "The lamp bulb flickers due to pixelation.",
        "The lamp bulb is pixelated but stable.",
        "0.5",
    ),
)
"""The paper's three examples: truth, prediction, score."""

_SCORES: Final = {"0": 0.0, "0.5": 0.5, "1": 1.0}
_LABEL: Final = re.compile(
    r"(ground[\s_-]*truth|predict(?:ion|ed)|(?:score|answer)(?=(?:\s*:)+\s*[01]))(?:\s*:)+",
    re.IGNORECASE,
)
"""Labels of a pair; a score of a match, as in `score: 3-2`, is none."""


def judge_prompt(truth: str, predicted: str) -> str:
    """The judge's prompt with its three examples, then the pair to rate, each text on its line."""
    shown = [_case(*example) for example in EXAMPLES]
    asked = _case(as_shown(truth), as_shown(predicted), "")
    return "\n\n".join([JUDGE.text, *shown, asked]).rstrip()


def as_shown(text: str) -> str:
    """An explanation as the judge sees it: on one line, and without the labels of a pair in it."""
    return _LABEL.sub(r"\1", on_one_line(text))


def parse_judge(text: str) -> float | Unparsed:
    """0, 0.5 or 1 when that is all the text says; anything else is worth asking again."""
    said = text.strip()
    if said in _SCORES:
        return _SCORES[said]
    return unparsed(UnparsedReason.MALFORMED if said else UnparsedReason.MISSING, said)


def _case(truth: str, predicted: str, score: str) -> str:
    return f"Ground truth: {truth}\nPrediction: {predicted}\nScore: {score}"
