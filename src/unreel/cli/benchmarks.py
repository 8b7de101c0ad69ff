"""`unreel benchmarks`: layouts, examples, checks of a user's benchmark, and public benchmarks by name."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api import benchmarks as api
from unreel.cli.catalogue import print_catalogue_entries, print_catalogue_entry
from unreel.cli.options import LAYOUTS, settings_options
from unreel.cli.output import echo, json_option, print_json, print_message, print_table

if TYPE_CHECKING:
    from unreel.benchmarks.check import BenchmarkCheckResult

_NAMES_SHOWN = 8
_REASONS_SHOWN = 10


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def benchmarks(context: click.Context, *, as_json: bool) -> None:
    """List layouts and public benchmarks, write an example, or check your own benchmark.

    Without a command, all layouts are listed, each with an example.
    """
    if context.invoked_subcommand is None:
        _print_layout_examples(as_json=as_json)


@benchmarks.command(short_help="Check a benchmark before an evaluation.")
@settings_options(api.CheckSettings)
@json_option
def check(settings: api.CheckSettings, *, as_json: bool) -> None:
    """Check the benchmark PATH, a folder or a table of clips, before an evaluation.

    Prints the layout of PATH, the field of each column, ignored columns, the number of clips by label,
    split, creator and source, unusable rows with reasons, the questions of each protocol, and three
    rows. Checks that files exist, but does not open them. Exits with status 1 if rows are unusable or files
    are missing, and with 2 if no row is usable.
    """
    checked = api.check_benchmark(settings)
    if as_json:
        print_json(checked)
    else:
        _print_benchmark_check(checked)
    if not checked.n_clips:
        print_message(f"unreel: {settings.path}: no usable clip. Correct the problems above")
        sys.exit(2)
    sys.exit(0 if checked.is_sound else 1)


@benchmarks.command(short_help="Write a small benchmark with synthetic clips.")
@click.argument("layout", type=LAYOUTS)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="New folder for the benchmark.",
)
def example(layout: str, *, out: Path) -> None:
    """Write a small benchmark in LAYOUT with synthetic clips, as a starting point."""
    echo(api.write_example(layout, out))


@benchmarks.command(short_help="Convert masks of generated regions to a table of traces.")
@settings_options(api.MaskSettings)
def masks(settings: api.MaskSettings) -> None:
    """Convert the masks in FOLDER/masks to a JSONL table of the clips in FOLDER/videos and their traces.

    A mask is a video with the name of its clip, bright where the clip is generated. The table is
    printed; store it as FOLDER/manifest.jsonl. Exits with status 1 if a clip or a mask cannot be used.
    """
    n_rejected = 0
    for is_usable, text in api.iter_masked_clips(settings):
        if is_usable:
            echo(text)
        else:
            n_rejected += 1
            print_message(f"unreel: {text}")
    sys.exit(1 if n_rejected else 0)


@benchmarks.command("list", short_help="List the public benchmarks by name.")
@json_option
def list_(*, as_json: bool) -> None:
    """List the public benchmarks of the catalogue.

    A fact that no source states is "not stated"; one that only somebody else than the owner states
    is marked "third party".
    """
    entries = api.list_public_benchmarks()
    print_catalogue_entries(entries, ("hub_ids", "licence", "access", "size"), as_json=as_json)


@benchmarks.command(short_help="Show all facts about one public benchmark.")
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show all facts about the public benchmark NAME, each with its mark and source, also those not stated.

    The marks are verified (the owner states it), third party (only somebody else does), measured
    (a command or function of unreel gave it) and not stated.
    """
    print_catalogue_entry(api.get_public_benchmark(name), as_json=as_json)


def _print_layout_examples(*, as_json: bool) -> None:
    examples = api.list_examples()
    if as_json:
        print_json(examples)
        return
    for layout, example in examples.items():
        echo(f"{layout}: {example.words}", "")
        for name, text in example.tables.items():
            echo(f"    {name}", *(f"      {line}" for line in text.splitlines()))
        echo(*(f"    {clip}" for clip in example.clips), "")
    print_message(
        "`unreel benchmarks example LAYOUT --out DIR` writes one, "
        "`unreel benchmarks check PATH` reads yours"
    )


def _print_benchmark_check(checked: "BenchmarkCheckResult") -> None:
    echo(f"{checked.source}: layout {checked.layout}")
    for layout in checked.could_be:
        echo(f"  could also be read as {layout}: name it with --layout {layout}")
    for table in checked.tables:
        rows = [
            {"column": column, "read as": field, "which is": api.describe_columns()[field]}
            for column, field in table.read.items()
        ]
        rows += [
            {
                "column": column,
                "read as": "not read",
                "which is": (
                    f"did you mean {field_hint}?"
                    if field_hint
                    else "name it with --map FIELD=COLUMN if it is needed"
                ),
            }
            for column, field_hint in table.ignored.items()
        ]
        print_table(("column", "read as", "which is"), rows, title=f"columns of {table.table}")
    print_table(
        ("what", "found"),
        [{"what": k, "found": v} for k, v in _build_benchmark_summary(checked).items()],
    )
    if checked.unusable:
        print_table(
            ("rows", "cannot be used because", "the first"),
            [
                {
                    "rows": reason.n,
                    "cannot be used because": reason.first.why,
                    "the first": reason.first.name,
                }
                for reason in checked.unusable[:_REASONS_SHOWN]
            ],
        )
    print_table(
        ("protocol", "questions", "missing"),
        [
            {
                "protocol": protocol.protocol,
                "questions": f"{protocol.n} {protocol.subject}{'' if protocol.n == 1 else 's'}",
                "missing": protocol.lacks or "nothing",
            }
            for protocol in checked.instruments
        ],
    )
    if checked.rows:
        columns = [key for key in checked.rows[0] if any(row[key] for row in checked.rows)]
        print_table(columns, checked.rows, title=f"the first {len(checked.rows)} clips")


def _build_benchmark_summary(checked: "BenchmarkCheckResult") -> dict[str, str]:
    n_local = checked.n_clips - checked.n_behind_urls - checked.n_not_here
    text = f"{n_local} here, {checked.n_behind_urls} behind URLs"
    if checked.n_not_here:
        text += f", {checked.n_not_here} missing, the first {checked.first_not_here}"
    return {
        "clips": f"{checked.n_clips} usable, {checked.n_unusable} unusable rows",
        "labels": _format_name_counts(checked.labels),
        "splits": _format_name_counts(checked.splits),
        "creators": _format_name_counts(checked.creators),
        "sources": _format_name_counts(checked.sources),
        "scenes": f"{checked.n_scenes} named by groups",
        "shows": api.describe_detectable_difference(checked),
        "truth": f"{checked.n_rated} clips with a score, {checked.n_traces} marked traces",
        "size and length": f"declared for {checked.n_measured} clips; "
        "`unreel score` needs them for answers of trace",
        "files": text,
    }


def _format_name_counts(counts: Mapping[str, int]) -> str:
    named = [f"{n} {name}" for name, n in list(counts.items())[:_NAMES_SHOWN]]
    n_more = len(counts) - len(named)
    return ", ".join(named) + (f" and {n_more} more" if n_more else "") if named else "none named"
