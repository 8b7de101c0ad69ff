"""`unreel compare`: compare reviewers on the clips that both judged."""

import sys

import click

from unreel.api import runs as api
from unreel.cli.options import settings_options
from unreel.cli.output import (
    Form,
    is_stdout_terminal,
    json_option,
    print_json,
    print_message,
    print_table,
    table_format_option,
)
from unreel.core.comparison import Comparison, Comparisons, Difference
from unreel.core.estimate import Estimate, Unmeasured

_RECORD = (
    *("who", "against", "metric", "first", "second"),
    *("less", "low", "high", "n", "p", "Holm", "detectable", "why"),
)
"""Columns of a table with one line per difference; `why` is the reason for a missing difference, `detectable` the
smallest true difference that these clips show in 8 of 10 comparisons, if none was found."""


@click.command()
@settings_options(api.CompareSettings)
@table_format_option
@json_option
def compare(settings: api.CompareSettings, *, form: Form, as_json: bool) -> None:
    """Compare RUNS in pairs, on the clips that both of a pair judged: differences with confidence intervals.

    A run is a folder or s3://bucket/prefix of `unreel eval`; a folder of runs means all of them,
    and one run under several conditions can be compared with itself. All must have the same
    protocol and the same clips. Sends nothing. Exits with status 1 if questions were excluded
    because one of the two was not asked, failed, or is unreadable.
    """
    compare_and_print(settings, form=form, as_json=as_json)


def compare_and_print(settings: api.CompareSettings, *, form: Form = "text", as_json: bool) -> None:
    """Compare the runs, print the differences, and exit the process."""
    comparisons = api.compare_runs(settings, print_message)
    if as_json:
        print_json(comparisons)
    else:
        print_run_comparisons(comparisons, form)
    sys.exit(0 if comparisons.is_complete else 1)


def print_run_comparisons(comparisons: Comparisons, form: Form) -> None:
    """Print comparisons of runs: on a terminal one table each, otherwise one table for all."""
    apart = form == "text" and is_stdout_terminal()
    print_message(
        f"{comparisons.instrument}: p-values are corrected for {comparisons.n_tests} differences (Holm)"
    )
    for comparison in comparisons:
        if apart:
            print_table(
                ("metric", "first", "second", "less", "95 % interval", "p", "Holm", "detectable"),
                [
                    {
                        "metric": gap.metric,
                        "first": _format_number(gap.first),
                        "second": _format_number(gap.second),
                        "less": f"{gap.difference.value:+.2f}",
                        "95 % interval": f"{gap.difference.low:+.2f} to {gap.difference.high:+.2f}",
                        "p": _format_p_value(gap.p),
                        "Holm": _format_p_value(gap.p_corrected),
                        "detectable": _format_number(gap.detectable),
                    }
                    for gap in comparison.differences
                    if isinstance(gap.difference, Estimate)
                ],
                title=f"{comparison.first} less {comparison.second}",
            )
        print_message(*_format_comparison_counts(comparison, comparisons))
    if not apart:
        rows = [
            _build_difference_record(comparison, gap)
            for comparison in comparisons
            for gap in comparison.differences
        ]
        columns = [*_RECORD]
        if form == "latex":  # a paper shows only measured values; the others are reported on stderr
            columns.remove("why")
            rows = [row for row in rows if not row["why"]]
        print_table(columns, rows, form=form)


def _format_comparison_counts(comparison: Comparison, comparisons: Comparisons) -> list[str]:
    common = f"{comparison.n_common} questions that both answered readably"
    lines = [f"  {common}, of {comparison.n_sources} clips or scenes"]
    if comparison.n_invalid:
        lines.append(f"  {comparison.n_invalid} excluded: one of the two has no readable answer")
        names = [row.metric for row in comparison.differences]
        counting = api.find_counting_metrics(comparisons, names)
        if counting:
            lines.append(f"  unreadable answers count as wrong in {', '.join(counting)}")
    if comparison.n_unshared:
        lines.append(f"  {comparison.n_unshared} excluded: only one of the two was queried")
    missed = [row.metric for row in comparison.differences if row.detectable is not None]
    if missed:
        meaning = "`detectable` is the smallest true difference that 8 of 10 such comparisons find"
        lines.append(f"  no difference found in {', '.join(missed)}: {meaning}")
    unmeasured: dict[str, list[str]] = {}
    for row in comparison.differences:
        if isinstance(row.difference, Unmeasured):
            unmeasured.setdefault(str(row.difference), []).append(row.metric)
    return lines + [f"  {', '.join(names)}: {reason}" for reason, names in unmeasured.items()]


def _build_difference_record(comparison: Comparison, difference: Difference) -> dict[str, object]:
    gap = difference.difference
    line: dict[str, object] = dict.fromkeys(_RECORD, "")
    line |= {"who": comparison.first, "against": comparison.second, "metric": difference.metric}
    line |= {"first": _format_number(difference.first), "second": _format_number(difference.second)}
    if isinstance(gap, Unmeasured):
        return {**line, "why": gap.why}
    bounds = {"less": gap.value, "low": gap.low, "high": gap.high}
    line |= {name: f"{value:.2f}" for name, value in bounds.items()}
    line |= {
        "n": gap.n,
        "p": _format_p_value(difference.p),
        "Holm": _format_p_value(difference.p_corrected),
    }
    return {**line, "detectable": _format_number(difference.detectable)}


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _format_p_value(p: float | None) -> str:
    if p is None:
        return ""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"  # noqa: PLR2004  the last place that is printed
