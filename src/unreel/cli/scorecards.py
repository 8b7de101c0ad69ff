"""Printing of scorecards: tables of metrics, counts of answers, and rows for `--json`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from unreel.api.public_benchmarks import find_published_results
from unreel.cli.output import Form, print_message, print_table
from unreel.core.estimate import PART_PREFIXES, Measured, Metric, Scorecard, Unmeasured

if TYPE_CHECKING:
    from unreel.api.public_benchmarks import PublishedResults
    from unreel.evaluation.run_job import EvalRun
    from unreel.evaluation.scoring import ConditionScore

_SHOWN = 5
_RECORD = ("metric", "of", "value", "low", "high", "n", "parsed", "asked", "why")
"""Columns of a table with one line per metric; `why` is the reason for a missing value."""


def print_condition_scorecards(scores: "Sequence[ConditionScore]", form: Form = "text") -> None:
    """Print the scorecard of each condition of a run; all in one table if `form` is not "text"."""
    for score in scores:
        print_message(f"condition: {score.condition}")
        if score.n_not_asked:
            print_message(f"  {score.n_not_asked} questions have not been sent yet")
        print_answer_counts(score.scorecard)
        if form == "text" and score.scorecard.n_answered:
            print_scorecard_metrics(score.scorecard)
    if form != "text":
        print_scorecard_table("condition", {str(s.condition): s.scorecard for s in scores}, form)


def build_condition_scorecard_rows(scores: "Iterable[ConditionScore]") -> list[dict[str, object]]:
    """Return the scorecard of each condition as a row for `--json`."""
    return [
        {
            "condition": score.condition.written(),
            "scorecard": score.scorecard,
            "n_not_asked": score.n_not_asked,
        }
        for score in scores
    ]


def build_published_document(
    run: "EvalRun", scores: "Sequence[ConditionScore]"
) -> dict[str, object]:
    """Return the published results for the benchmark of `run` for `--json`; empty if there are none."""
    published = _find_published_results(run, scores)
    return {} if published is None else {"published": published}


def print_published_results(
    run: "EvalRun", scores: "Sequence[ConditionScore]", form: Form = "text"
) -> None:
    """Print the published results for the benchmark of `run` beside those of `scores`, and how they differ."""
    published = _find_published_results(run, scores) if form == "text" else None
    if published is None:
        return
    for score in scores if published.figures else ():
        values = {metric.name: metric.value for metric in score.scorecard.metrics}
        rows = [
            {
                "metric": name,
                "here": format_metric_cell(values[name]) or "not measured",
                "published": f"{min(figures.values()):g} to {max(figures.values()):g}",
                "by": f"{len(figures)} models",
            }
            for name, figures in published.figures.items()
            if name in values
        ]
        print_table(("metric", "here", "published", "by"), rows, title=published.source)
    if published.statements:
        print_table(("published", "mark", "source"), published.statements)
    print_message(
        "Published results are not from this program. What differs, as far as it is stated:"
    )
    print_message(*(f"  {name}: {text}" for name, text in published.differences.items()))


def _find_published_results(
    run: "EvalRun", scores: "Sequence[ConditionScore]"
) -> "PublishedResults | None":
    return find_published_results(
        run.benchmark_path, run.recipe.protocol, [score.condition for score in scores]
    )


def print_answer_counts(scorecard: Scorecard) -> None:
    """Print the number of answered questions, and the reasons for missing answers."""
    print_message(
        f"{scorecard.instrument}: {scorecard.n_answered} of {scorecard.n_questions} questions answered"
    )
    for what, counts in (("failed", scorecard.failures), ("unreadable", scorecard.unparsed)):
        for reason, n in counts.items():
            print_message(f"  {what}: {n} {reason}")
    for name, n in scorecard.answered_by.items():
        print_message(f"  answered by another model: {n} {name}")
    if scorecard.confusion:
        print_message(
            "  clips: " + ", ".join(f"{n} {what}" for what, n in scorecard.confusion.items())
        )


def explain_empty_scorecards(scorecards: Sequence[Scorecard]) -> str:
    """Return the reason why no scorecard in `scorecards` has a measured metric; "" if one has."""
    if not any(card.n_answered for card in scorecards):
        return "no question was answered, so nothing was measured"
    if any(metric.coverage.parsed for card in scorecards for metric in card.metrics):
        return ""
    return "no answer could be read, so nothing was measured; `unreel score RUN --parser lenient` reads more"


def print_unmatched_items(unmatched: Mapping[str, Sequence[object]]) -> None:
    """Print, for each description in `unmatched`, the number of its unmatched items and the first few."""
    for what, items in unmatched.items():
        if items:
            listed = "; ".join(str(item) for item in items[:_SHOWN])
            print_message(f"  {len(items)} {what}: {listed}{' ...' if len(items) > _SHOWN else ''}")


def print_scorecard_table(what: str, cards: Mapping[str, Scorecard], form: Form) -> None:
    """Print all metrics in one table, a row per metric; `what` is the title of the scorecards' column."""
    rows = [
        {what: name, **_build_metric_record(metric)}
        for name, card in cards.items()
        for metric in card.metrics
    ]
    print_table((what, *_RECORD), rows, form=form)


def print_scorecard_metrics(scorecard: Scorecard, form: Form = "text") -> None:
    """Print each metric of a scorecard with its interval, count and coverage.

    In the format "text", metrics of single creators and parts of the benchmark are separate tables,
    and metrics without questions are omitted.
    """
    if form != "text":
        print_table(_RECORD, [*map(_build_metric_record, scorecard.metrics)], form=form)
        return
    groups = _group_metrics_by_creator_or_part(scorecard.metrics)
    headline = [m for m in groups.pop("", {}).values() if m.coverage.asked]
    print_table(
        ("metric", "value", "95 % interval", "n", "parsed"), [*map(_build_metric_row, headline)]
    )
    parts = {name: groups.pop(name) for name in list(groups) if name.startswith(PART_PREFIXES)}
    for kind, by_group in (("creator", groups), ("part", parts)):
        names = list(dict.fromkeys(name for metrics in by_group.values() for name in metrics))
        if names:
            print_table(
                (kind, *names),
                [
                    {
                        kind: group,
                        **{
                            name: format_metric_cell(m[name].value) if name in m else ""
                            for name in names
                        },
                    }
                    for group, m in by_group.items()
                ],
            )


def _group_metrics_by_creator_or_part(metrics: Sequence[Metric]) -> dict[str, dict[str, Metric]]:
    """Group metrics by the creator or part that their name contains after ": "; "" for all clips."""
    groups: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        name, _, group = metric.name.partition(": ")
        groups.setdefault(group, {})[name] = metric
    return groups


def _build_metric_record(metric: Metric) -> dict[str, object]:
    name, _, group = metric.name.partition(": ")
    value, coverage = metric.value, metric.coverage
    line: dict[str, object] = dict.fromkeys(_RECORD, "")
    line |= {"metric": name, "of": group}
    line |= {"parsed": coverage.parsed, "asked": coverage.asked}
    if isinstance(value, Unmeasured):
        return {**line, "why": value.why}
    numbers = {"value": value.value, "low": value.low, "high": value.high}
    return {**line, **{key: f"{number:.2f}" for key, number in numbers.items()}, "n": value.n}


def _build_metric_row(metric: Metric) -> dict[str, object]:
    value, coverage = metric.value, metric.coverage
    line = {"metric": metric.name, "parsed": f"{coverage.parsed}/{coverage.asked}"}
    if isinstance(value, Unmeasured):
        return {**line, "value": "", "95 % interval": value, "n": ""}
    interval = f"{value.low:.2f} to {value.high:.2f}"
    return {**line, "value": f"{value.value:.2f}", "95 % interval": interval, "n": value.n}


def format_metric_cell(value: Measured) -> str:
    """Format a metric with its confidence interval and count as one cell; empty if not measured."""
    if isinstance(value, Unmeasured):
        return ""
    return f"{value.value:.1f} [{value.low:.0f}, {value.high:.0f}] n={value.n}"
