"""How a scorecard is printed for a person."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from unreel.cli.output import print_table, say
from unreel.core.estimate import Estimate, Metric, Scorecard, Unmeasured

if TYPE_CHECKING:
    from unreel.evaluate.scoring import ConditionScore


def print_scores(scores: "Iterable[ConditionScore]") -> None:
    """Print the scorecard of each condition of a run."""
    for score in scores:
        say(f"condition: {score.condition}")
        if score.n_not_asked:
            say(f"  {score.n_not_asked} questions were not put yet")
        say_counts(score.scorecard)
        print_metrics(score.scorecard)


def score_rows(scores: "Iterable[ConditionScore]") -> list[dict[str, object]]:
    """The same for `--json`."""
    return [
        {
            "condition": score.condition.written(),
            "scorecard": score.scorecard,
            "n_not_asked": score.n_not_asked,
        }
        for score in scores
    ]


def say_counts(card: Scorecard) -> None:
    """Tell how many questions were answered, and why others were not."""
    say(f"{card.instrument}: {card.n_answered} of {card.n_questions} questions answered")
    for what, counts in (("failed", card.failures), ("unreadable", card.unparsed)):
        for reason, n in counts.items():
            say(f"  {what}: {n} {reason}")


def print_metrics(card: Scorecard) -> None:
    """Print every figure with its interval, count and coverage; creators get a table of their own."""
    groups = _by_group(card.metrics)
    headline = groups.pop("", {})
    print_table(
        ("metric", "value", "95 % interval", "n", "parsed"), [*map(_line, headline.values())]
    )
    if groups:
        names = list(dict.fromkeys(name for metrics in groups.values() for name in metrics))
        print_table(("creator", *names), [_group_line(*group, names) for group in groups.items()])


def _by_group(metrics: Sequence[Metric]) -> dict[str, dict[str, Metric]]:
    """Metrics by the group that their name gives after a colon, "" for all clips."""
    groups: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        name, _, group = metric.name.partition(": ")
        groups.setdefault(group, {})[name] = metric
    return groups


def _line(metric: Metric) -> dict[str, object]:
    value, coverage = metric.value, metric.coverage
    line = {"metric": metric.name, "parsed": f"{coverage.parsed}/{coverage.asked}"}
    if isinstance(value, Unmeasured):
        return {**line, "value": "", "95 % interval": value, "n": ""}
    interval = f"{value.low:.2f} to {value.high:.2f}"
    return {**line, "value": f"{value.value:.2f}", "95 % interval": interval, "n": value.n}


def _group_line(
    group: str, metrics: Mapping[str, Metric], names: Sequence[str]
) -> dict[str, object]:
    values = {name: metrics[name].value for name in names if name in metrics}
    shown = {
        name: f"{value.value:.1f} [{value.low:.0f}, {value.high:.0f}] n={value.n}"
        for name, value in values.items()
        if isinstance(value, Estimate)
    }
    return {"creator": group, **dict.fromkeys(names, ""), **shown}
