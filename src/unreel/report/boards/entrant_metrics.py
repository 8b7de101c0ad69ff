"""Metrics of a report's entrants: overall and by group, cost of answers, and question outcomes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Measured, Unmeasured
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import RealismVerdict, get_verdict_decision
from unreel.protocols.group_metrics import compute_group_scorecards, get_trace_categories
from unreel.protocols.metric_definitions import HABIT, MetricDefinition
from unreel.protocols.protocol import ScoredQuestion
from unreel.report.entrants import AnsweredQuestion, ReportEntrant
from unreel.stats.bootstrap import bootstrap_mean

_NO_END = (0.0, math.inf)
DIFFERENCE = MetricDefinition(
    metric="paired-difference",
    title="Difference",
    meaning="first minus second",
    group="difference",
    better="neither",
    range=(-100.0, 100.0),
    formula="metric of the first - metric of the second, on the questions that both answered",
)
READABLE = MetricDefinition(
    metric="readable",
    title="Readable",
    meaning="answers with a readable label or score",
    group="coverage",
    unit="",
    range=_NO_END,
    places=0,
    formula="count, next to the number of questions",
)
SCORE_GIVEN = MetricDefinition(
    metric="score",
    title="Score given",
    meaning="mean, 1 to 5",
    group="score",
    better="neither",
    unit="",
    range=(1.0, 5.0),
    places=2,
    formula="sum of the scores given / scores",
)
CALLED_REAL = MetricDefinition(
    metric="called-real",
    title="Called real",
    meaning="fraction of these clips that is generated, %",
    group="calibration",
    better="less",
    formula="100 * generated clips called real / clips called real",
)
CALLED_GENERATED = replace(
    CALLED_REAL,
    metric="called-generated",
    title="Called generated",
    better="more",
    formula="100 * generated clips called generated / clips called generated",
)
ECE = MetricDefinition(
    metric="label-ece",
    title="ECE",
    meaning="expected calibration error, 0 to 1",
    group="calibration",
    better="less",
    unit="",
    range=(0.0, 1.0),
    places=3,
    formula="sum over both labels of share of the clips with this answer * |1 or 0 for the label - share generated|",
)
BRIER = MetricDefinition(
    metric="label-brier",
    title="Brier",
    meaning="mean squared error, 0 to 1",
    group="calibration",
    better="less",
    unit="",
    range=(0.0, 1.0),
    places=3,
    formula="mean of (1 or 0 for the label - 1 or 0 for the truth) squared: the share of wrong labels",
)
LENIENCY = MetricDefinition(
    metric="leniency",
    title="Leniency",
    meaning="mean of its score minus people's score",
    group=HABIT,
    better="neither",
    unit="",
    range=(-4.0, 4.0),
    places=2,
    formula="mean of (score given - people's score)",
)
GAVE = MetricDefinition(
    metric="people-by-score",
    title="Gave",
    meaning="people's mean score of the clips with this score",
    group="calibration",
    better="neither",
    unit="",
    range=(1.0, 5.0),
    places=2,
    formula="mean of people's scores over the clips with this score",
)
TOKENS_EACH = MetricDefinition(
    metric="tokens-each",
    title="Tokens each",
    meaning="mean input and output tokens of an answer",
    group="cost",
    better="less",
    unit="tokens",
    range=_NO_END,
    places=0,
    formula="sum of input and output tokens / answers that report both",
)
USD_EACH = MetricDefinition(
    metric="usd-each",
    title="USD each",
    meaning="mean cost of an answer",
    group="cost",
    better="less",
    unit="USD",
    range=_NO_END,
    places=5,
    formula="sum of costs / answers with a known price",
)
SECONDS = MetricDefinition(
    metric="seconds",
    title="Seconds",
    meaning="mean time from question to answer",
    group="cost",
    better="less",
    unit="s",
    range=_NO_END,
    places=2,
    formula="sum of latencies / answers that report their latency",
)
OWN = (
    DIFFERENCE,
    READABLE,
    SCORE_GIVEN,
    CALLED_REAL,
    CALLED_GENERATED,
    ECE,
    BRIER,
    LENIENCY,
    GAVE,
    TOKENS_EACH,
    USD_EACH,
    SECONDS,
)


def get_entrant_metric(entrant: ReportEntrant, name: str) -> Measured:
    """Return the metric called `name` from the entrant's scorecard; unmeasured if missing."""
    try:
        return entrant.card[name]
    except UnknownNameError:
        return Unmeasured(f"{entrant.protocol} does not measure it")


def subtract_distance_from_100(measured: Measured) -> Measured:
    """Return 100 minus a measured distance, with its interval, so that more is better."""
    if isinstance(measured, Unmeasured):
        return measured
    low, high = 100 - measured.high, 100 - measured.low
    return replace(measured, value=100 - measured.value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricBreakdown:
    """Values of one metric of every entrant, by group."""

    title: str
    metric: MetricDefinition
    cells: Mapping[str, Mapping[int, Measured]]
    """Values by group, then by the entrant's index on the board."""


def measure_metrics_by_creator(entrants: Sequence[ReportEntrant]) -> list[MetricBreakdown]:
    """Measure the entrants' metrics separately for the clips of each creator."""
    protocol = entrants[0].instrument
    metrics = protocol.figures
    if metrics.per_creator is not None:
        return [_build_scorecard_breakdown(entrants, metrics[metrics.per_creator])]
    if protocol.wording.decides == "score":
        cells: dict[str, dict[int, Measured]] = {}
        for index, entrant in enumerate(entrants):
            scores: dict[str, list[tuple[str, int]]] = {}
            for item in entrant.items:
                verdict = item.outcome
                if isinstance(verdict, RealismVerdict) and isinstance(verdict.score, int):
                    scores.setdefault(item.creator or "real", []).append((item.key, verdict.score))
            for group, group_scores in scores.items():
                cells.setdefault(group, {})[index] = bootstrap_mean(
                    [score for _, score in group_scores],
                    seed=entrant.seed,
                    clusters=[clip for clip, _ in group_scores],
                    bounds=SCORE_GIVEN.range,
                )
        return [
            MetricBreakdown(title="creator", metric=SCORE_GIVEN, cells=dict(sorted(cells.items())))
        ]
    cards = []
    for entrant in entrants:
        creators: dict[str, tuple[str, ...]] = {
            str(item.rows[0].subject): (item.creator,)
            for item in entrant.items
            if item.creator is not None
        }
        cards.append(
            compute_group_scorecards(
                entrant.instrument,
                entrant.rows,
                groups_of=partial(_get_row_creators, creators),
                seed=entrant.seed,
            )
        )
    return [_build_breakdown("creator", metrics[name], cards) for name in metrics.by_creator]


def measure_metrics_by_benchmark_part(
    entrants: Sequence[ReportEntrant], kind: str
) -> list[MetricBreakdown]:
    """Return the entrants' metrics for each named part of the benchmark; `kind` is one of `PARTS`."""
    metrics = entrants[0].instrument.figures
    parts = [_build_scorecard_breakdown(entrants, metrics[name], kind) for name in metrics.by_part]
    return [breakdown for breakdown in parts if breakdown.cells]


def measure_metrics_by_trace_category(entrants: Sequence[ReportEntrant]) -> list[MetricBreakdown]:
    """Measure the metrics for each trace category; empty without such metrics or categories."""
    metrics = entrants[0].instrument.figures
    if not metrics.by_category:
        return []
    cards = [
        compute_group_scorecards(
            entrant.instrument, entrant.rows, groups_of=get_trace_categories, seed=entrant.seed
        )
        for entrant in entrants
    ]
    if not any(cards):
        return []
    return [_build_breakdown("category", metrics[name], cards) for name in metrics.by_category]


def _get_row_creators(
    creators: Mapping[str, tuple[str, ...]], row: ScoredQuestion[Any, Any]
) -> tuple[str, ...]:
    return creators.get(str(row.subject), ())


def _build_breakdown(
    kind: str, metric: MetricDefinition, cards: Sequence[Mapping[str, Any]]
) -> MetricBreakdown:
    groups = sorted({group for card in cards for group in card})
    cells = {
        group: {i: card[group][metric.metric] for i, card in enumerate(cards) if group in card}
        for group in groups
    }
    return MetricBreakdown(title=kind, metric=metric, cells=cells)


def _build_scorecard_breakdown(
    entrants: Sequence[ReportEntrant], definition: MetricDefinition, kind: str = ""
) -> MetricBreakdown:
    """Collect a metric's values by creator, or by part of the given `kind`, from the scorecards."""
    cells: dict[str, dict[int, Measured]] = {}
    for index, entrant in enumerate(entrants):
        for metric in entrant.card.metrics:
            name, _, group = metric.name.partition(": ")
            if name == definition.metric and group and group.startswith(kind):
                cells.setdefault(group.removeprefix(kind), {})[index] = metric.value
    title = kind.rstrip("=") or "creator"
    return MetricBreakdown(title=title, metric=definition, cells=dict(sorted(cells.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """Cost of an entrant's answers: sums that include failures, and means per answer with intervals."""

    n_answers: int
    input_tokens: int | None
    """Number of input tokens; `None` if not reported, because unknown is not 0."""
    output_tokens: int | None
    cost_usd: float | None
    tokens_each: Measured
    usd_each: Measured
    latency_s: Measured


def sum_answer_cost(entrant: ReportEntrant) -> AnswerCost:
    """Sum the tokens, money and time of the entrant's stored answers, as far as they are reported."""
    answers = [item for item in entrant.items if item.stored.get("failure_reason", "") is None]

    def total(column: str) -> Any:
        amounts = (item.stored.get(column) for item in entrant.items)
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known else None

    def mean(get_value: Callable[[AnsweredQuestion], float | None], reason: str) -> Measured:
        values = [(item.key, value) for item in answers if (value := get_value(item)) is not None]
        if not values:
            return Unmeasured(reason)
        return bootstrap_mean(
            [value for _, value in values], seed=entrant.seed, clusters=[clip for clip, _ in values]
        )

    def get_n_tokens(item: AnsweredQuestion) -> float | None:
        n_input, n_output = item.stored["input_tokens"], item.stored["output_tokens"]
        return None if n_input is None or n_output is None else float(n_input + n_output)

    def get_latency_s(item: AnsweredQuestion) -> float | None:
        latency_us = item.stored["latency_us"]
        return None if latency_us is None else latency_us / MICROSECONDS

    return AnswerCost(
        n_answers=len(answers),
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cost_usd=total("cost_usd"),
        tokens_each=mean(get_n_tokens, "no answer reports its tokens"),
        usd_each=mean(lambda item: item.stored["cost_usd"], "no price is known"),
        latency_s=mean(get_latency_s, "no answer reports its latency"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcomeCounts:
    """Numbers of an entrant's questions by outcome: readable, unreadable, failed or not sent."""

    n_questions: int
    readable: int
    unreadable: int
    """Number of answers whose label or score could not be read."""
    failures: Mapping[str, int]
    n_pending: int
    parts: Mapping[str, int]
    """Number of unreadable parts of answers, by part and reason."""


def count_question_outcomes(entrant: ReportEntrant) -> QuestionOutcomeCounts:
    """Count the entrant's readable and unreadable answers, failures and unsent questions."""
    readable = sum(get_verdict_decision(item.rows[0].outcome) is not None for item in entrant.items)
    card = entrant.card
    return QuestionOutcomeCounts(
        n_questions=card.n_questions,
        readable=readable,
        unreadable=card.n_answered - readable,
        failures=card.failures,
        n_pending=entrant.n_pending,
        parts=card.unparsed,
    )
