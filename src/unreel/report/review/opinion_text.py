"""Texts about opinions, their stability and agreement, for the terminal and the evidence page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.opinion import Opinion, OpinionStability
from unreel.protocols.protocol import Mode

_STABILITY_TEXTS = {
    "steady": "The verdict is the same on all three variants.",
    "unsure": "Unsure: the verdict changes when the clip is",
    "not known": "Not known: a verdict is missing.",
}


def format_opinion_stability(stability: OpinionStability) -> str:
    """Return one sentence about the stability of an opinion when the clip is slightly changed."""
    if stability.state != "unsure":
        return _STABILITY_TEXTS[stability.state]
    turned = [retrial.variant.name for retrial in stability.retrials if retrial.flips]
    return f"{_STABILITY_TEXTS['unsure']} {' or '.join(turned)}."


def format_stability_lines(stabilities: Sequence[OpinionStability]) -> list[str]:
    """Return lines for the terminal: each opinion's stability, and the problems of its changed clips."""
    lines = []
    for stability in stabilities:
        lines.append(f"stability, {stability}")
        lines += [
            f"  when {retrial.variant.name}: {retrial.problem}"
            for retrial in stability.retrials
            if retrial.problem is not None
        ]
    return lines


def build_stability_rows(stabilities: Sequence[OpinionStability]) -> list[dict[str, Any]]:
    """Return the stability of each opinion as a dictionary for the page's template."""
    return [
        {
            "reviewer": sanitise_line(stability.opinion.reviewer),
            "protocol": stability.opinion.question.instrument.protocol,
            "headline": stability.opinion.headline,
            "state": stability.state,
            "says": format_opinion_stability(stability),
            "retrials": [
                {
                    "name": retrial.variant.name,
                    "parameters": str(retrial.variant),
                    "headline": retrial.headline,
                    "problem": retrial.problem,
                    "flips": retrial.flips,
                    "overlap": None
                    if retrial.box_overlap is None
                    else f"{retrial.box_overlap:.2f}",
                }
                for retrial in stability.retrials
            ],
        }
        for stability in stabilities
    ]


Tone = Literal["real", "generated", "graded", "failed"]

NO_PROOF = (
    "Reviewers are AI models or other programs. Their verdicts are not forensic proof: they are often wrong, "
    "and neither a verdict nor its absence is a ground to accuse anyone."
)
FILE_ONLY = (
    "Findings in a file cannot tell whether its picture was generated. That nothing was found proves nothing, "
    "and is no ground to trust or accuse anyone."
)
"""Warning of a review without a reviewer."""
PARSERS: dict[Mode, str] = {
    "lenient": "Answers were parsed leniently: common variations of the requested format are accepted.",
    "strict": "Answers were parsed strictly: only the requested format is accepted.",
}


def get_opinion_colour(opinion: Opinion) -> Tone:
    """Return the name of an opinion's colour, by its verdict; `failed` without a readable verdict."""
    if opinion.verdict is None or not opinion.is_readable:
        return "failed"
    decision = opinion.decision
    return decision.value if isinstance(decision, Label) else "graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAgreement:
    """Agreement of several reviewers under one protocol: counts of answers, box overlaps, onset gaps."""

    protocol: str
    said: Mapping[str, int]
    """Number of reviewers by label or score."""
    n_silent: int
    """Number of reviewers without a verdict."""
    overlaps: tuple[float, ...]
    """Intersection over union of every two boxes."""
    apart_us: tuple[int, ...]
    """Distance of every two onsets, in microseconds."""

    def __str__(self) -> str:
        return f"{self.protocol}: {self.counts}"

    @property
    def counts(self) -> str:
        """Return the counts of answers, the overlaps of boxes and the distances of onsets, as text."""
        total = sum(self.said.values()) + self.n_silent
        silent = [("no verdict", self.n_silent)] if self.n_silent else []
        counts = ", ".join(f"{key} by {n} of {total}" for key, n in [*self.said.items(), *silent])
        boxes = f"; boxes overlap {_format_range(self.overlaps)}" if self.overlaps else ""
        times = [difference_us / MICROSECONDS for difference_us in self.apart_us]
        onsets = f"; onsets are {_format_range(times)} s apart" if times else ""
        return f"{counts}{boxes}{onsets}"


def compute_reviewer_agreements(opinions: Sequence[Opinion]) -> list[ReviewerAgreement]:
    """Compute the agreement of the reviewers under each protocol; empty if there is one reviewer."""
    if len({opinion.reviewer for opinion in opinions}) == 1:
        return []
    protocols = dict.fromkeys(opinion.question.instrument.protocol for opinion in opinions)
    return [compute_protocol_agreement(opinions, name) for name in protocols]


def compute_protocol_agreement(opinions: Sequence[Opinion], question: str) -> ReviewerAgreement:
    """Compute the agreement of the opinions under the protocol called `question`."""
    answers = [opinion for opinion in opinions if opinion.question.instrument.protocol == question]
    readable = [opinion for opinion in answers if opinion.is_readable]
    verdicts = [opinion.verdict for opinion in readable]
    traces = [v for v in verdicts if isinstance(v, TraceVerdict) and v.label is Label.GENERATED]
    boxes = [trace.box for trace in traces if isinstance(trace.box, Box)]
    starts = [trace.start_us for trace in traces if isinstance(trace.start_us, int)]
    headlines = Counter(opinion.headline for opinion in readable)
    return ReviewerAgreement(
        protocol=question,
        said=dict(headlines.most_common()),
        n_silent=len(answers) - len(readable),
        overlaps=tuple(box.iou(other) for box, other in combinations(boxes, 2)),
        apart_us=tuple(abs(start - other) for start, other in combinations(starts, 2)),
    )


def _format_range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
