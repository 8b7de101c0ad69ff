"""Metrics of a report: which metrics a board shows, their wording, and the cost of the answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Measured, Unmeasured
from unreel.core.verdict import RealismVerdict
from unreel.protocols.correctness import get_decision
from unreel.protocols.figures import MetricDefinition
from unreel.protocols.groups import score_groups, trace_categories
from unreel.protocols.protocol import ScoredQuestion
from unreel.report.boards.own_figures import SCORE_GIVEN
from unreel.report.entrants import ReportEntrant, RunItem
from unreel.stats.bootstrap import bootstrap_mean


def metric_of(entrant: ReportEntrant, name: str) -> Measured:
    """Return the metric called `name` from the entrant's scorecard; unmeasured if missing."""
    try:
        return entrant.card[name]
    except UnknownNameError:
        return Unmeasured(f"{entrant.protocol} does not measure it")


def invert_distance(measured: Measured) -> Measured:
    """Return 100 minus a distance, so that more is better."""
    if isinstance(measured, Unmeasured):
        return measured
    low, high = 100 - measured.high, 100 - measured.low
    return replace(measured, value=100 - measured.value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricBreakdown:
    """One figure of every entrant, for each of several groups."""

    title: str
    figure: MetricDefinition
    cells: Mapping[str, Mapping[int, Measured]]
    """By group, then by the entrant's place on the board."""


def by_creator(entrants: Sequence[ReportEntrant]) -> list[MetricBreakdown]:
    """Return the results per creator, for protocols that have them."""
    instrument = entrants[0].instrument
    figures = instrument.figures
    if figures.per_creator is not None:
        return [_build_scorecard_breakdown(entrants, figures[figures.per_creator])]
    if instrument.wording.decides == "score":
        return [_measure_scores_by_creator(entrants)]
    cards = [
        score_groups(
            entrant.instrument,
            entrant.rows,
            groups_of=partial(_get_row_creators, _map_clips_to_creators(entrant)),
            seed=entrant.seed,
        )
        for entrant in entrants
    ]
    return [_build_breakdown("creator", figures[name], cards) for name in figures.by_creator]


def by_part(entrants: Sequence[ReportEntrant], kind: str) -> list[MetricBreakdown]:
    """Return the results per named part of the benchmark; `kind` is one of `PARTS`."""
    figures = entrants[0].instrument.figures
    found = [_build_scorecard_breakdown(entrants, figures[name], kind) for name in figures.by_part]
    return [breakdown for breakdown in found if breakdown.cells]


def by_category(entrants: Sequence[ReportEntrant]) -> list[MetricBreakdown]:
    """Return the results per kind of trace; empty for other protocols and for unnamed kinds."""
    figures = entrants[0].instrument.figures
    if not figures.by_category:
        return []
    cards = [
        score_groups(
            entrant.instrument, entrant.rows, groups_of=trace_categories, seed=entrant.seed
        )
        for entrant in entrants
    ]
    if not any(cards):
        return []
    return [_build_breakdown("category", figures[name], cards) for name in figures.by_category]


def _build_breakdown(
    kind: str, figure: MetricDefinition, cards: Sequence[Mapping[str, Any]]
) -> MetricBreakdown:
    groups = sorted({group for card in cards for group in card})
    name = figure.metric
    return MetricBreakdown(
        title=kind,
        figure=figure,
        cells={
            group: {place: card[group][name] for place, card in enumerate(cards) if group in card}
            for group in groups
        },
    )


def _get_row_creators(
    creators: Mapping[str, tuple[str, ...]], row: ScoredQuestion[Any, Any]
) -> tuple[str, ...]:
    return creators.get(str(row.subject), ())


def _map_clips_to_creators(entrant: ReportEntrant) -> dict[str, tuple[str, ...]]:
    return {
        str(item.rows[0].subject): (item.creator,)
        for item in entrant.items
        if item.creator is not None
    }


def _build_scorecard_breakdown(
    entrants: Sequence[ReportEntrant], figure: MetricDefinition, kind: str = ""
) -> MetricBreakdown:
    """Return the scorecards' values per creator, or per part of that kind."""
    cells: dict[str, dict[int, Measured]] = {}
    for place, entrant in enumerate(entrants):
        for metric in entrant.card.metrics:
            name, _, group = metric.name.partition(": ")
            if name == figure.metric and group and group.startswith(kind):
                cells.setdefault(group.removeprefix(kind), {})[place] = metric.value
    title = kind.rstrip("=") or "creator"
    return MetricBreakdown(title=title, figure=figure, cells=dict(sorted(cells.items())))


def _measure_scores_by_creator(entrants: Sequence[ReportEntrant]) -> MetricBreakdown:
    cells: dict[str, dict[int, Measured]] = {}
    for place, entrant in enumerate(entrants):
        scores: dict[str, list[tuple[str, int]]] = {}
        for item in entrant.items:
            verdict = item.outcome
            if isinstance(verdict, RealismVerdict) and isinstance(verdict.score, int):
                scores.setdefault(item.creator or "real", []).append((item.key, verdict.score))
        for group, given in scores.items():
            cells.setdefault(group, {})[place] = bootstrap_mean(
                [score for _, score in given],
                seed=entrant.seed,
                clusters=[clip for clip, _ in given],
                bounds=SCORE_GIVEN.range,
            )
    return MetricBreakdown(title="creator", figure=SCORE_GIVEN, cells=dict(sorted(cells.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """Cost of an entrant: sums include failures and are exact, means are over answers and have intervals."""

    n_answers: int
    input_tokens: int | None
    """`None` if not reported: unknown is not 0."""
    output_tokens: int | None
    cost_usd: float | None
    tokens_each: Measured
    usd_each: Measured
    latency_s: Measured


def sum_cost(entrant: ReportEntrant) -> AnswerCost:
    """Return the tokens, cost and time of the stored answers, as far as reported."""
    answers = [item for item in entrant.items if item.stored.get("failure_reason", "") is None]

    def total(column: str) -> Any:
        every = (item.stored.get(column) for item in entrant.items)
        known = [amount for amount in every if amount is not None]
        return sum(known) if known else None

    def mean(values: Iterable[tuple[RunItem, float | None]], reason: str) -> Measured:
        known = [(item.key, value) for item, value in values if value is not None]
        if not known:
            return Unmeasured(reason)
        return bootstrap_mean(
            [value for _, value in known],
            seed=entrant.seed,
            clusters=[clip for clip, _ in known],
        )

    return AnswerCost(
        n_answers=len(answers),
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cost_usd=total("cost_usd"),
        tokens_each=mean(
            ((i, _find_token_count(i)) for i in answers), "no answer reports its tokens"
        ),
        usd_each=mean(((i, i.stored["cost_usd"]) for i in answers), "no price is known"),
        latency_s=mean(
            ((i, _find_latency_seconds(i)) for i in answers), "no answer reports its latency"
        ),
    )


def _find_token_count(item: RunItem) -> float | None:
    given, made = item.stored["input_tokens"], item.stored["output_tokens"]
    return None if given is None or made is None else float(given + made)


def _find_latency_seconds(item: RunItem) -> float | None:
    taken_us = item.stored["latency_us"]
    return None if taken_us is None else taken_us / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts:
    """Outcomes of the questions, each counted once."""

    n_asked: int
    readable: int
    unreadable: int
    """Answered, but the part that decides, label or score, could not be read."""
    failures: Mapping[str, int]
    n_not_asked: int
    parts: Mapping[str, int]
    """Parts of answers that could not be read, by part and reason."""


def count_outcomes(entrant: ReportEntrant) -> OutcomeCounts:
    """Return the number of scorable answers, and the reasons for the others."""
    readable = sum(get_decision(row.outcome) is not None for row in _list_first_rows(entrant.items))
    card = entrant.card
    return OutcomeCounts(
        n_asked=card.n_questions,
        readable=readable,
        unreadable=card.n_answered - readable,
        failures=card.failures,
        n_not_asked=entrant.n_not_asked,
        parts=card.unparsed,
    )


def _list_first_rows(items: Sequence[RunItem]) -> list[ScoredQuestion[Any, Any]]:
    return [item.rows[0] for item in items]
