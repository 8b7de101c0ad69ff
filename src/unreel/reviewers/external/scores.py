"""Convert a detector's output, a number or a word, into a probability and a protocol answer."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.core.small_documents import parse_json

ScoreMeans = Literal["generated", "real"]
Shown = Literal["clip", "frames"]
"""What a service is posted."""
_FORM: Final = 'one line of JSON with "score" from 0 to 1, "label" ("real" or "generated"), or both'
_SURE: Final = 1e-6
"""Minimum distance of a belief from one half, also at the threshold."""
_READABLE: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInterpretation:
    """Interpretation of scores: the meaning of a high one, and the threshold."""

    score_means: ScoreMeans = "generated"
    threshold: float = 0.5

    def believe(self, told: Any) -> float | Failure:
        """Return the probability that the clip is generated, from 0 to 1, from the detector's reply."""
        wrong = _explain_invalid_reply(told)
        if wrong:
            return _build_malformed_failure(wrong)
        label, score = told.get("label"), told.get("score")
        if score is None:
            return 1.0 if label == Label.GENERATED else 0.0
        belief = self._belief(score)
        said = Label.GENERATED if belief > 1 / 2 else Label.REAL
        if label is not None and label != said:
            reads = f"the score {score:g} at the threshold {self.threshold:g}"
            return _build_malformed_failure(
                f"its label says {label}, and {reads} says {said.value}"
            )
        return belief

    def _belief(self, score: float) -> float:
        """Return `score` rescaled so that the threshold is one half."""
        below = score < self.threshold
        reach = self.threshold if below else 1 - self.threshold
        part = max(_SURE, abs(score - self.threshold) / reach) / 2
        meant = 0.5 - part if below else 0.5 + part
        return meant if self.score_means == "generated" else 1 - meant


def name_external_model(model: str, reading: ScoreInterpretation, *parts: str) -> str:
    """Return the stable name of `model`; it changes with the program's files, arguments or threshold."""
    return f"{model}-{digest(*parts, reading.score_means, repr(reading.threshold))[:8]}"


def read_last_line(output: bytes) -> Any | Failure:
    """Return the reply of a program: the last non-empty line of its output, parsed as JSON."""
    lines = [line for line in output.split(b"\n") if line.strip()]
    if not lines:
        return Failure(
            FailureReason.EMPTY_REPLY, f"the program wrote nothing; it should write {_FORM}"
        )
    return read_reply(lines[-1])


def read_reply(data: bytes) -> Any | Failure:
    """Parse the JSON in `data`; NaN is invalid."""
    try:
        told = parse_json(data)
        json.dumps(told, allow_nan=False)
    except (InvalidValueError, ValueError, RecursionError):
        return _build_malformed_failure(f"the reply is not {_FORM}")
    return told


def _explain_invalid_reply(told: Any) -> str:
    """Return the fault of a reply; "" if there is none."""
    if not isinstance(told, dict) or (told.get("score") is None and told.get("label") is None):
        return f"the reply is not {_FORM}"
    label, score = told.get("label"), told.get("score")
    if label is not None and label not in [each.value for each in Label]:
        return f"the label {str(label)[:_READABLE]!a} is neither real nor generated"
    number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (number and 0 <= score <= 1):
        return f"the score {str(score)[:_READABLE]!a} does not lie from 0 to 1"
    return ""


def _build_malformed_failure(detail: str) -> Failure:
    return Failure(FailureReason.MALFORMED_REPLY, detail)
