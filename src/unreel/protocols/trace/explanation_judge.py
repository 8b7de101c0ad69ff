"""Judge that scores explanations in answers of `trace`: prompt, and the parser of its scores."""

import re

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.presentation import quote_text_for_prompt
from unreel.protocols.protocol import ProtocolPrompt
from unreel.protocols.trace.prompts import SOURCE

JUDGE = ProtocolPrompt(
    text=(
        "You will receive a ground-truth explanation and a model-predicted explanation.\n"
        "Rate the predicted explanation on a scale of 0, 0.5, or 1 based on:\n"
        "- 0: Completely wrong or no explanation.\n"
        "- 0.5: Same object mentioned but incorrect reason.\n"
        "- 1: Both object and reason correctly identified.\n"
        "Respond with only the score.\n"
        "\n"
        "Examples:\n"
        "\n"
        "Ground Truth: 'The clock hands are floating without support.'\n"
        "Predicted : 'The clock face is tilted.'\n"
        "Answer    : 0\n"
        "\n"
        "Ground Truth: 'The bottle cap is warped at the hinge.'\n"
        "Predicted : 'The bottle cap is warped at the hinge.'\n"
        "Answer    : 1\n"
        "\n"
        "Ground Truth: 'The lamp bulb flickers due to pixelation.'\n"
        "Predicted : 'The lamp bulb is pixelated but stable.'\n"
        "Answer    : 0.5"
    ),
    source=SOURCE,
)
"""Prompt of the paper with its three examples; the pair to rate follows in the same layout."""

_SCORE = re.compile(
    r"[*_`\"'\s]{0,8}(?:(?:score|answer|rating)[*_`\s]{0,8}[:=][*_`\"'\s]{0,8})?"
    r"(?P<score>0?\.50{0,3}|[01](?:\.0{1,3})?)[*_`\"'\s]{0,8}\.?[*_`\"'\s]{0,8}",
    re.IGNORECASE | re.ASCII,
)
_LABEL = re.compile(
    r"(ground[\s_-]*truth|predict(?:ion|ed)|(?:score|answer)(?=(?:\s*:)+\s*[01]))(?:\s*:)+",
    re.IGNORECASE,
)
"""Labels of the layout, to remove from explanations; the score of a match, as in `score: 3-2`, is not one."""


def build_judge_prompt(truth: str, predicted: str) -> str:
    """Build the judge's prompt with the true and the predicted explanation, each on one line.

    The explanations have the same layout as the examples in the prompt.
    """
    expected, answer = quote_explanation_for_judge(truth), quote_explanation_for_judge(predicted)
    return f"{JUDGE.text}\n\nGround Truth: '{expected}'\nPredicted : '{answer}'\nAnswer    :"


def quote_explanation_for_judge(text: str) -> str:
    """Return an explanation for the judge's prompt: on one line, without labels such as `Predicted:`."""
    return _LABEL.sub(r"\1", quote_text_for_prompt(text))


def parse_judge_score(text: str) -> float | Unparsed:
    """Parse a judge's score of 0, 0.5 or 1; the text may contain nothing else.

    Forms such as `1.0`, `**1**` and `Score: 1` are accepted. For any other text, ask the judge again.
    """
    line = text.strip()
    if match := _SCORE.fullmatch(line):
        return float(match["score"])
    return Unparsed.of(UnparsedReason.MALFORMED if line else UnparsedReason.MISSING, line)
