"""`unreel published`: show the tables of the three papers, and recompute their numbers."""

import sys

import click

from unreel.benchmarks.published.check import check_published_numbers as recalculate
from unreel.benchmarks.published.misprints import PrintedNumberCheckResult
from unreel.benchmarks.published.printed_tables import SOURCES, PublishedTable
from unreel.benchmarks.published.printed_tables import read_published_table as read_table
from unreel.cli.output import Form, echo, json_option, print_json, print_table, table_format_option
from unreel.core.registry import LazyImport


@click.group()
def published() -> None:
    """Show or recompute the figures published in the three papers."""


@published.command()
@click.option(
    "--quiet", is_flag=True, help="Print one line per check, without the list of misprints."
)
@json_option
def check(*, quiet: bool, as_json: bool) -> None:
    """Recompute every published figure from its counts, and compare both.

    Exits with status 1 if the number of reproduced figures differs from the known one.
    """
    checks = recalculate()
    if as_json:
        print_json([_build_figure_check_row(check) for check in checks])
    else:
        for check in checks:
            _print_figure_check(check, quiet=quiet)
    sys.exit(0 if all(check.ok for check in checks) else 1)


@published.command()
@click.argument("table", required=False)
@table_format_option
@json_option
def show(table: str | None, *, form: Form, as_json: bool) -> None:
    """Print the published table TABLE. Without TABLE, list the tables."""
    if table is None:
        rows = [
            {"table": name, "paper": source.paper, "place": source.table}
            for name, source in SOURCES.items()
        ]
        print_json(rows) if as_json else print_table(("table", "paper", "place"), rows, form=form)
        return
    shown = read_table(table)
    _print_published_table(
        shown, f"{shown.source.paper}, {shown.source.table}", form, as_json=as_json
    )


@published.command()
@click.argument("table")
@click.argument("scores", nargs=-1, required=True)
@table_format_option
@json_option
def make(table: str, *, scores: tuple[str, ...], form: Form, as_json: bool) -> None:
    """Print your own SCORES in the layout of TABLE in the paper.

    SCORES are outputs of `unreel score --json`, each written as NAME=FILE. Tables: reality_creators (table 3), reality_think (4), reality_preference (5) and
    reality_human (16). NAME is the name of the model, by default that of the file.
    """
    make_table = LazyImport(
        "unreel.benchmarks.published.paper_style_tables:build_paper_style_table"
    ).load()
    read_scored = LazyImport(
        "unreel.benchmarks.published.paper_style_tables:read_scorecard_file"
    ).load()
    own_table = make_table(table, [scored for named in scores for scored in read_scored(named)])
    title = f"As {own_table.source.table} of {own_table.source.paper}"
    _print_published_table(own_table, title, form, as_json=as_json)


def _print_published_table(table: PublishedTable, title: str, form: Form, *, as_json: bool) -> None:
    if as_json:
        print_json(table)
    else:
        print_table(table.columns, table.rows, title=title, form=form)


def _build_figure_check_row(check: PrintedNumberCheckResult) -> dict[str, object]:
    return {
        "ok": check.ok,
        **{name: getattr(check, name) for name in PrintedNumberCheckResult.__slots__},
    }


def _print_figure_check(check: PrintedNumberCheckResult, *, quiet: bool) -> None:
    echo(check)
    if quiet:
        return
    echo(f"    {check.formula}")
    for misprint in check.misprints:
        echo(f"  - {misprint}")
    if check.no_counts:
        echo(f"  no counts behind {len(check.no_counts)} cells: {'; '.join(check.no_counts)}")
