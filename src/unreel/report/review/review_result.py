"""Result of a review: a summary in one sentence, and a JSON document with the page's content."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from unreel.core.answer import Reply
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.question import Condition, Instrument
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS, format_seconds
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.media.messages import INCOMPLETE
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.protocols.protocol import Mode
from unreel.report.review.file_origin import FileOriginChecks
from unreel.report.review.opinion_text import compute_reviewer_agreements
from unreel.reviewers.external.detector_scores import COMMAND, HTTP
from unreel.reviewers.registry import FLOORS

if TYPE_CHECKING:  # not needed for a review without runs
    from unreel.evaluation.run_job import EvalRun


UNKNOWN = "not known"
FILE_ONLY_HEADLINE = "No model looked at the picture: only the file was examined."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAccuracyRecord:
    """Measured accuracy of a reviewer in one run under one condition, overall and by label."""

    reviewer: str
    instrument: Instrument
    condition: Condition
    benchmark: str
    metrics: tuple[tuple[MetricDefinition, Measured], ...]

    def __str__(self) -> str:
        texts = []
        for metric, value in self.metrics:
            if isinstance(value, Unmeasured):
                texts.append(f"{metric.title} not known ({value.why})")
                continue
            unit = f" {metric.unit}" if metric.unit else ""
            numbers = (value.value, value.low, value.high)
            point, low, high = (f"{number:.{metric.places}f}" for number in numbers)
            interval = f"{value.level:.0%} interval {low} to {high}, n = {value.n}"
            texts.append(f"{metric.title} {point}{unit} ({interval})")
        first = self.metrics[0][0]
        return f"{'; '.join(texts)}. On {self.benchmark}; {first.title}: {first.meaning}"


def select_matching_records(
    opinion: Opinion, records: Sequence[ReviewerAccuracyRecord]
) -> tuple[ReviewerAccuracyRecord, ...]:
    """Select the accuracy records with the reviewer, protocol and condition of `opinion`."""
    question = opinion.question
    key = (opinion.reviewer, question.instrument, question.condition)
    return tuple(r for r in records if (r.reviewer, r.instrument, r.condition) == key)


def format_reviewer_accuracy(opinion: Opinion, records: Sequence[ReviewerAccuracyRecord]) -> str:
    """Return as text the accuracy of the opinion's reviewer in runs with this question and condition."""
    own = [record for record in records if record.reviewer == opinion.reviewer]
    same_protocol = [record for record in own if record.instrument == opinion.question.instrument]
    if matching := select_matching_records(opinion, records):
        return "; ".join(dict.fromkeys(map(str, matching)))
    if same_protocol:
        conditions = ", ".join(dict.fromkeys(str(record.condition) for record in same_protocol))
        return f"{UNKNOWN} for this condition; the given runs have {conditions}"
    if own:
        return f"{UNKNOWN} for this question; the given runs have other questions"
    return f"{UNKNOWN}; none of the given runs has this reviewer" if records else UNKNOWN


def read_reviewer_records(run: "EvalRun", mode: Mode) -> tuple[ReviewerAccuracyRecord, ...]:
    """Compute the accuracy of the run's reviewer for each condition; `mode` is the answer parser."""
    from unreel.evaluation.scoring import score_run

    metric_set = run.recipe.instrument.figures
    ranking = metric_set.ranks_by(judged=False)
    class_metrics = [
        metric for metric in metric_set.class_metrics if metric_set[metric].better == "more"
    ]
    metrics = [metric_set[metric] for metric in dict.fromkeys([ranking, *class_metrics])]
    return tuple(
        ReviewerAccuracyRecord(
            reviewer=run.reviewer_name(),
            instrument=run.scope.instrument,
            condition=score.condition,
            benchmark=sanitise_line(Path(run.recipe.benchmark).name),
            metrics=tuple((metric, score.scorecard[metric.metric]) for metric in metrics),
        )
        for score in score_run(run, mode=mode)
    )


Statement = Literal[
    "generated", "both", "unsure", "real", "graded", "refused", "unreadable", "silent"
]
_ORDER: tuple[Statement, ...] = get_args(Statement)
Attention = Literal["incomplete", "disagreement", "failure", "generated", "named", "none"]
"""Reason to look at a clip before others."""
_MISSING = {"refused", "unreadable", "silent"}
_ONE: dict[Statement, str] = {
    "generated": "says {clip} looks AI-generated",
    "both": "says that {clip} looks AI-generated, and also that it looks real",
    "unsure": "is unsure (its verdict changes when the clip is changed a little)",
    "real": "says {clip} looks real",
    "graded": "rates the realism of {clip}",
    "refused": "refused to answer",
    "unreadable": "gave an answer that could not be read",
    "silent": "gave no answer",
}
_SEVERAL: dict[Statement, str] = {
    "generated": "say {clip} looks AI-generated",
    "both": "say that {clip} looks AI-generated, and also that it looks real",
    "unsure": "are unsure (their verdicts change when the clip is changed a little)",
    "real": "say {clip} looks real",
    "graded": "rate the realism of {clip}",
    "refused": "refused to answer",
    "unreadable": "gave answers that could not be read",
    "silent": "gave no answer",
}
_MODEL = "AI model"
_KINDS = (("recorded:", "recorded answers"), (COMMAND, "program"), (HTTP, "service"))
_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerStatement:
    """Overall statement of one reviewer about a clip, combined from all its answers."""

    reviewer: str
    statement: Statement
    onset_us: int | None = None
    """First onset in the reviewer's answers."""
    grades: tuple[tuple[int, str], ...] = ()
    """Scores with their texts."""
    reason: str = ""
    """Short reason for a missing answer."""


def summarise_by_reviewer(review: Review) -> tuple[ReviewerStatement, ...]:
    """Return one combined statement per reviewer, in order; with any label, scores do not count.

    A baseline has no statement, because it looks at little or nothing of the picture.
    """
    opinions = [opinion for opinion in review.opinions if opinion.reviewer not in FLOORS]
    unsure = {s.opinion.key for s in review.stabilities if s.state == "unsure"}
    labelled = [opinion for opinion in opinions if opinion.wording.decides == "label"]
    by_reviewer: dict[str, list[Opinion]] = {}
    for opinion in labelled or opinions:
        by_reviewer.setdefault(opinion.reviewer, []).append(opinion)
    return tuple(
        _build_reviewer_statement(sanitise_line(reviewer), answers, unsure)
        for reviewer, answers in by_reviewer.items()
    )


def classify_attention(review: Review, origin: FileOriginChecks) -> Attention:
    """Return the reason why a person should look at the clip first, such as `disagreement`; or `none`."""
    if any(INCOMPLETE in check.says for check in origin.checks):
        return "incomplete"
    statements = {voice.statement for voice in summarise_by_reviewer(review)}
    is_generated = "generated" in statements or bool(origin.claims)
    if statements & {"both", "unsure"} or (is_generated and "real" in statements):
        return "disagreement"
    if statements & _MISSING or not review.is_complete:
        return "failure"
    return "generated" if is_generated else "named" if origin.hints else "none"


def get_reviewer_kind_name(reviewer: str) -> str:
    """Return the kind of the reviewer as text for a page, such as "AI model", from its name."""
    for prefix, kind in _KINDS:
        if reviewer.startswith(prefix):
            return kind
    if reviewer in FLOORS:
        return "fixed rule, no AI model"
    return _MODEL if "/" in reviewer else "reviewer"


def find_first_onset_us(opinions: Sequence[Opinion]) -> int | None:
    """Return the earliest onset that the opinions report; `None` if there is none."""
    verdicts = [opinion.verdict for opinion in opinions]
    return min(
        [
            verdict.start_us
            for verdict in verdicts
            if isinstance(verdict, TraceVerdict)
            and verdict.label is Label.GENERATED
            and isinstance(verdict.start_us, int)
        ],
        default=None,
    )


def format_review_headline(review: Review) -> str:
    """Return one sentence that summarises the verdicts on the clip."""
    voices = summarise_by_reviewer(review)
    if not voices and review.opinions:
        names = ", ".join(dict.fromkeys(sanitise_line(o.reviewer) for o in review.opinions))
        return f"No verdict: only baselines judged this clip, which ignore its content ({names})."
    if not voices:
        return FILE_ONLY_HEADLINE
    if len(voices) == 1:
        name = voices[0].reviewer
        who = f"The {_MODEL} {name}" if get_reviewer_kind_name(name) == _MODEL else name
        return f"{who} {_format_statement(voices[0].statement, voices)}."
    noun = (
        f"{_MODEL}s"
        if all(get_reviewer_kind_name(v.reviewer) == _MODEL for v in voices)
        else "reviewers"
    )
    by_statement: dict[Statement, list[ReviewerStatement]] = {}
    for statement in _ORDER:
        if group := [voice for voice in voices if voice.statement == statement]:
            by_statement[statement] = group
    parts: list[str] = []
    for index, (statement, group) in enumerate(by_statement.items()):
        who = _format_share_of_reviewers(
            len(group), len(voices), noun=noun, index=index, n_groups=len(by_statement)
        )
        parts.append(
            f"{who} {_format_statement(statement, group, clip='it' if parts else 'this clip')}"
        )
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _build_reviewer_statement(
    reviewer: str, opinions: Sequence[Opinion], unsure: Collection[str]
) -> ReviewerStatement:
    decisions = [opinion.decision for opinion in opinions if opinion.is_readable]
    labels = {decision for decision in decisions if isinstance(decision, Label)}
    grades = tuple(
        (opinion.decision, opinion.headline)
        for opinion in opinions
        if opinion.is_readable and not isinstance(opinion.decision, Label)
    )
    failures = [o.outcome for o in opinions if isinstance(o.outcome, Failure)]
    statement: Statement
    if any(opinion.key in unsure for opinion in opinions):
        statement = "unsure"
    elif labels:
        statement = "both" if len(labels) > 1 else "real" if Label.REAL in labels else "generated"
    elif grades:
        statement = "graded"
    elif any(opinion.is_refusal for opinion in opinions):
        statement = "refused"
    else:
        statement = "silent" if len(failures) == len(opinions) else "unreadable"
    return ReviewerStatement(
        reviewer=reviewer,
        statement=statement,
        onset_us=find_first_onset_us(opinions),
        grades=grades,
        reason=failures[0].reason.value.replace("-", " ") if statement == "silent" else "",
    )


def _format_share_of_reviewers(n: int, total: int, *, noun: str, index: int, n_groups: int) -> str:
    if n == total:
        return f"both {noun}" if total == _PAIR else f"all {total} {noun}"
    if index == 0:
        return f"{n} of {total} {noun}"
    if n_groups == _PAIR:
        return "the other" if n == 1 else f"the other {n}"
    return str(n)


def _format_statement(
    kind: Statement, statements: Sequence[ReviewerStatement], *, clip: str = "this clip"
) -> str:
    statement = (_ONE if len(statements) == 1 else _SEVERAL)[kind].format(clip=clip)
    onsets = sorted({voice.onset_us for voice in statements if voice.onset_us is not None})
    grades = sorted({grade for voice in statements for grade in voice.grades})
    reasons = dict.fromkeys(voice.reason for voice in statements if voice.reason)
    if onsets and kind == "generated":
        suffix = " at the earliest" if len(onsets) > 1 else ""
        return f"{statement}, from {format_seconds(onsets[0])}{suffix}"
    if grades and kind == "graded":
        ratings = [text for _, text in grades]
        rating = ratings[0] if len(ratings) == 1 else f"{ratings[0]} to {ratings[-1]}"
        return f"{statement} as {rating}"
    return f"{statement} ({', '.join(reasons)})" if reasons else statement


FORM = {"form": "unreel-review", "version": 1}
"""Name and version of the format; a field with a changed meaning needs a new version."""


def build_review_json(
    review: Review, origin: FileOriginChecks, *, records: Sequence[ReviewerAccuracyRecord] = ()
) -> dict[str, Any]:
    """Return the result of one review as values of JSON types."""
    stability = {"stability": [result.to_json() for result in review.stabilities]}
    return {
        "file": review.clip.location,
        "clip": review.clip.id,
        "parser": review.mode,
        "attention": classify_attention(review, origin),
        "summary": [format_review_headline(review), *origin.claims],
        "reviewers": [
            {
                "reviewer": voice.reviewer,
                "says": voice.statement,
                "onset_us": voice.onset_us,
                "onset_s": _convert_to_seconds(voice.onset_us),
            }
            for voice in summarise_by_reviewer(review)
        ],
        "facts": review.clip.facts,
        "checks": origin.checks,
        "provenance": origin.provenance,
        "opinions": [_build_opinion_json(opinion, review, records) for opinion in review.opinions],
        "agreement": compute_reviewer_agreements(review.opinions),
        **(stability if review.trials else {}),
    }


def _build_opinion_json(
    opinion: Opinion, review: Review, records: Sequence[ReviewerAccuracyRecord]
) -> dict[str, Any]:
    compared = review.compare_with_footage(opinion)
    clip_input = opinion.clip_input
    verdict = opinion.verdict
    start = verdict.start_us if isinstance(verdict, TraceVerdict) else None
    latency_us = opinion.outcome.latency_us if isinstance(opinion.outcome, Reply) else None
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
        "latency_s": _convert_to_seconds(latency_us),
        "cost_usd": opinion.cost_usd,
        "box_space": opinion.box_space,
        "prompt": opinion.prompt,
        "shown": [
            {"index": frame.index, "at_s": frame.at_s, "seconds": round(float(frame.at_s), 6)}
            for frame in (clip_input.frames if clip_input else ())
        ],
        "record": format_reviewer_accuracy(opinion, records),
        "figures": [
            {
                "metric": metric.metric,
                "title": metric.title,
                "unit": metric.unit,
                **_build_measurement_json(value),
            }
            for record in select_matching_records(opinion, records)
            for metric, value in record.metrics
        ],
        **({} if compared is None else {"footage": compared.to_json()}),
    }


def _build_measurement_json(value: Measured) -> dict[str, Any]:
    if isinstance(value, Estimate):
        return {"value": value.value, "low": value.low, "high": value.high, "n": value.n}
    return {"why": value.why}


def _convert_to_seconds(us: int | None) -> float | None:
    return None if us is None else us / MICROSECONDS
