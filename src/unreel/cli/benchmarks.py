"""`unreel benchmarks`: layouts, examples, checks of a user's benchmark, and public benchmarks by name."""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api import benchmarks as api
from unreel.api import public_benchmarks
from unreel.cli.catalogue import print_catalogue_entries, print_catalogue_entry
from unreel.cli.options import LAYOUTS, settings_options
from unreel.cli.output import (
    echo,
    format_rerun_command,
    json_option,
    print_json,
    print_message,
    print_table,
)
from unreel.cli.progress import ProgressMeter
from unreel.engine.progress import Progress

if TYPE_CHECKING:
    from unreel.benchmarks.check import BenchmarkCheckResult
    from unreel.catalogue.download import DownloadPlan

_NAMES_SHOWN = 8
_REASONS_SHOWN = 10
_MB = 10**6


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


@benchmarks.command(short_help="Download a public benchmark by name.")
@settings_options(public_benchmarks.GetSettings)
@click.option("--yes", is_flag=True, help="Download without a question.")
@json_option
def get(settings: public_benchmarks.GetSettings, *, yes: bool, as_json: bool) -> None:
    """Download the public benchmark NAME from the Hugging Face hub, and write the table that unreel reads.

    Shows the commit, size, licence and access first, and asks. Sizes and hashes are checked, and archives
    are unpacked and deleted. A call after a kill continues. Prints the record of the download, which is
    also stored as unreel-download.json. HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE work as usual.
    Exits with status 2 if nothing is downloaded, also for a benchmark whose steps by hand it prints.
    """
    if steps := public_benchmarks.list_manual_steps(settings.name):
        if as_json:
            print_json({"name": settings.name, "steps": steps})
        else:
            echo(*(f"{number}. {step}" for number, step in enumerate(steps, start=1)))
        print_message(f"unreel: {settings.name}: unreel does not download this benchmark")
        sys.exit(2)
    plan = public_benchmarks.plan_download(settings)
    print_message(*_format_download_plan(plan))
    if plan.files and not yes:
        if not sys.stdin.isatty():
            print_message(
                "unreel: --yes: required without a terminal. "
                f"Type {format_rerun_command('--yes')} to download the files"
            )
            sys.exit(2)
        print_message("Download the files? Type y or n:")
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            print_message("nothing was downloaded")
            sys.exit(2)
    finished: Counter[str] = Counter()
    with ProgressMeter() as meter:
        meter.tell("checking the files")

        def show_bytes(part: str, change: int) -> None:
            if part not in finished:
                due = plan.n_bytes if part == "download" else plan.n_unpacked_bytes
                meter.expect(f"MB of the {part}", max(1, due // _MB) if part == "download" else 0)
            finished[part] += change
            meter.step(f"MB of the {part}", Progress(done=finished[part] // _MB))

        def note_waiting() -> None:
            print_message(f"waiting for another process that downloads into {plan.folder}")

        record = public_benchmarks.run_download(plan, show_bytes, note_waiting)
    if as_json:
        print_json({"folder": str(plan.folder), **record.model_dump()})
    else:
        facts = {
            "folder": plan.folder,
            "revision": record.revision,
            "files": f"{len(record.files)}, {sum(file.size or 0 for file in record.files):,} bytes, verified",
            "bytes received": f"{record.n_bytes_received:,}, {record.n_bytes_received_twice:,} of them twice",
            "rows": "those of the owner" if record.n_rows is None else f"{record.n_rows:,}",
        }
        facts |= {f"omitted: {reason}": f"{n:,} rows" for reason, n in record.omitted.items()}
        print_table(("what", "value"), [{"what": k, "value": v} for k, v in facts.items()])
    print_message(*public_benchmarks.list_next_steps(plan, is_default=settings.out is None))


def _format_download_plan(plan: "DownloadPlan") -> list[str]:
    if plan.revision is None:
        return [f"{plan.entry.name}: all files are in {plan.folder}"]
    licence, gate = plan.revision.licence, plan.revision.is_gated
    stated = plan.entry.licence
    if licence is None and stated is not None and stated.value is not None:
        licence = f"{stated.value} ({stated.mark} in the catalogue)"
    return [
        f"{plan.entry.name}: {plan.record.repository}, commit {plan.revision.sha}",
        f"  to download: {len(plan.files)} files, {plan.n_bytes / _MB:,.1f} MB",
        f"  to unpack: about {plan.n_unpacked_bytes / _MB:,.1f} MB",
        f"  free: {plan.n_free_bytes / _MB:,.1f} MB in {plan.folder}",
        f"  licence: {licence or 'not stated'}",
        f"  access: accept the terms at {plan.revision.page}, and set HF_TOKEN"
        if gate
        else "  access: not gated",
    ]


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
