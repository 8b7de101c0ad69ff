"""Conversion of a detector's reply, a score or a label, into a probability."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json
from unreel.core.judgement import Label

ScoreMeans = Literal["generated", "real"]
Shown = Literal["clip", "frames"]
"""What a service is posted."""
_FORM: Final = 'one line of JSON with "score" from 0 to 1, "label" ("real" or "generated"), or both'
_SURE: Final = 1e-6
"""Minimum distance of a belief from one half, also at the threshold."""
_READABLE: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorScoreInterpretation:
    """Interpretation of a detector's scores: the label that a high score means, and the threshold."""

    score_means: ScoreMeans = "generated"
    threshold: float = 0.5

    def believe(self, told: Any) -> float | Failure:
        """Return the probability that the clip is generated, given the detector's parsed reply.

        Return a failure if the reply is invalid, or its label contradicts its score.
        """
        wrong = _explain_invalid_reply(told)
        if wrong:
            return _build_malformed_reply_failure(wrong)
        label, score = told.get("label"), told.get("score")
        if score is None:
            return 1.0 if label == Label.GENERATED else 0.0
        belief = self._belief(score)
        said = Label.GENERATED if belief > 1 / 2 else Label.REAL
        if label is not None and label != said:
            reads = f"the score {score:g} at the threshold {self.threshold:g}"
            return _build_malformed_reply_failure(
                f"its label says {label}, and {reads} says {said.value}"
            )
        return belief

    def _belief(self, score: float) -> float:
        """Return the probability of generated for a detector's score: the threshold gives one half."""
        below = score < self.threshold
        reach = self.threshold if below else 1 - self.threshold
        part = max(_SURE, abs(score - self.threshold) / reach) / 2
        meant = 0.5 - part if below else 0.5 + part
        return meant if self.score_means == "generated" else 1 - meant


def format_external_reviewer_name(
    model: str, reading: DetectorScoreInterpretation, *parts: str
) -> str:
    """Return the stable name of an external reviewer: `model` with a digest of its settings.

    `parts` are further texts for the digest, such as the files and arguments of a program.
    """
    return f"{model}-{digest(*parts, reading.score_means, repr(reading.threshold))[:8]}"


def parse_program_reply(output: bytes) -> Any | Failure:
    """Parse the last non-empty line of a program's output as JSON, or return a failure."""
    lines = [line for line in output.split(b"\n") if line.strip()]
    if not lines:
        return Failure(
            FailureReason.EMPTY_REPLY, f"the program wrote nothing; it should write {_FORM}"
        )
    return parse_detector_reply(lines[-1])


def parse_detector_reply(data: bytes) -> Any | Failure:
    """Parse the JSON reply of a detector, or return a failure. NaN is invalid."""
    try:
        told = parse_json(data)
        json.dumps(told, allow_nan=False)
    except (InvalidValueError, ValueError, RecursionError):
        return _build_malformed_reply_failure(f"the reply is not {_FORM}")
    return told


def _explain_invalid_reply(told: Any) -> str:
    """Return why a detector's parsed reply is invalid; "" if it is valid."""
    if not isinstance(told, dict) or (told.get("score") is None and told.get("label") is None):
        return f"the reply is not {_FORM}"
    label, score = told.get("label"), told.get("score")
    if label is not None and label not in [each.value for each in Label]:
        return f"the label {str(label)[:_READABLE]!a} is neither real nor generated"
    number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (number and 0 <= score <= 1):
        return f"the score {str(score)[:_READABLE]!a} does not lie from 0 to 1"
    return ""


def _build_malformed_reply_failure(detail: str) -> Failure:
    return Failure(FailureReason.MALFORMED_REPLY, detail)
