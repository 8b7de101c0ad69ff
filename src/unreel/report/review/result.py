"""A review as one JSON document: the content of the page as fields."""

from collections.abc import Sequence
from typing import Any, Final

from unreel.core.answer import Reply
from unreel.core.estimate import Estimate, Measured
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.report.review.headline import classify_review, format_headline, group_by_reviewer
from unreel.report.review.opinion_text import agreements
from unreel.report.review.origin import FileOrigin
from unreel.report.review.record import ReviewerRecord, format_record, select_matching_records

FORM: Final = {"form": "unreel-review", "version": 1}
"""What the document is; a field that changes its meaning makes a new version."""


def review_document(
    review: Review, origin: FileOrigin, *, records: Sequence[ReviewerRecord] = ()
) -> dict[str, Any]:
    """Return the data of one clip as values for JSON."""
    stability = {"stability": [found.to_json() for found in review.stabilities]}
    return {
        "file": review.clip.location,
        "clip": review.clip.id,
        "parser": review.mode,
        "attention": classify_review(review, origin),
        "summary": [format_headline(review), *origin.claims],
        "reviewers": [
            {
                "reviewer": voice.reviewer,
                "says": voice.says,
                "onset_us": voice.onset_us,
                "onset_s": _convert_to_seconds(voice.onset_us),
            }
            for voice in group_by_reviewer(review)
        ],
        "facts": review.clip.facts,
        "checks": origin.checks,
        "provenance": origin.provenance,
        "opinions": [_build_opinion_json(opinion, records) for opinion in review.opinions],
        "agreement": agreements(review.opinions),
        **(stability if review.trials else {}),
    }


def _build_opinion_json(opinion: Opinion, records: Sequence[ReviewerRecord]) -> dict[str, Any]:
    exhibit = opinion.exhibit
    verdict = opinion.verdict
    start = verdict.start_us if isinstance(verdict, TraceVerdict) else None
    took = opinion.outcome.latency_us if isinstance(opinion.outcome, Reply) else None
    return {
        "reviewer": opinion.reviewer,
        "instrument": str(opinion.question.instrument),
        "condition": opinion.question.condition.written(),
        "key": opinion.key,
        "headline": opinion.headline,
        "is_readable": opinion.is_readable,
        "problem": opinion.problem,
        "verdict": verdict,
        "start_s": _convert_to_seconds(start if isinstance(start, int) else None),
        "failure" if isinstance(opinion.outcome, Failure) else "reply": opinion.outcome,
        "latency_s": _convert_to_seconds(took),
        "cost_usd": opinion.cost_usd,
        "box_space": opinion.box_space,
        "prompt": opinion.prompt,
        "shown": [
            {"index": frame.index, "at_s": frame.at_s, "seconds": round(float(frame.at_s), 6)}
            for frame in (exhibit.frames if exhibit else ())
        ],
        "record": format_record(opinion, records),
        "figures": [
            {
                "metric": figure.metric,
                "title": figure.title,
                "unit": figure.unit,
                **_build_measurement_json(value),
            }
            for record in select_matching_records(opinion, records)
            for figure, value in record.figures
        ],
    }


def _build_measurement_json(value: Measured) -> dict[str, Any]:
    if isinstance(value, Estimate):
        return {"value": value.value, "low": value.low, "high": value.high, "n": value.n}
    return {"why": value.why}


def _convert_to_seconds(us: int | None) -> float | None:
    return None if us is None else us / MICROSECONDS
