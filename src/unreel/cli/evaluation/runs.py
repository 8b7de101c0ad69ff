"""`unreel runs` and `report`: list, check and restoration of runs, and pages about them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unreel.cli.lazy_group import build_unknown_command_error, is_near_known_name
from unreel.cli.options import list_run_completions, media_option, run_benchmark_options
from unreel.cli.output import (
    echo,
    format_retry_command,
    json_option,
    print_json,
    print_message,
    print_table,
)
from unreel.core.errors import UnreadableSourceError, UnreelError
from unreel.core.registry import LazyImport
from unreel.core.settings import EnvironmentSettings, read_environment_settings

if TYPE_CHECKING:
    from unreel.report.clips.clip_files import Media


@click.command()
@click.argument("runs", nargs=-1, required=True, shell_complete=list_run_completions)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Output folder for the report.",
)
@media_option("link", "copy", "none")
@click.option(
    "--judge",
    metavar="MODEL",
    help="Model whose stored scores of the explanations are used. `unreel score --judge MODEL` computes and stores them.",
)
@run_benchmark_options
@json_option
def report(
    *,
    runs: tuple[str, ...],
    out: Path,
    media: "Media",
    judge: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write an HTML report about RUNS: leaderboards, the worst mistakes of each model, and all clips with answers.

    A run is a folder or s3://bucket/prefix of `unreel eval`; a folder of runs means all of them.
    The report opens from disk and from any web server. Sends nothing.
    """
    write_report = LazyImport("unreel.report.site:write_report", "eval").load()
    open_all_told = LazyImport(
        "unreel.cli.evaluation.runs_job:open_runs_with_identity_warning", "eval"
    ).load()
    settings = read_environment_settings()
    opened = open_all_told(runs, settings, **options)
    written = write_report(opened, out, media=media, judge=judge)
    if as_json:
        print_json(written)
        return
    many = (
        "1 reviewer" if written.n_entrants == 1 else f"{written.n_entrants} reviewers and baselines"
    )
    print_message(
        f"{many}, {written.n_clips:,} clips, "
        f"{written.n_answers:,} answers; {written.size_bytes / 1e6:.1f} MB without media"
    )
    if written.missing_media and media != "none":
        print_message(f"  {written.missing_media} clips could not be linked or copied")
    echo(written.page)


_FIND = "unreel.evaluation.run_lookup"
_JOB = "unreel.cli.evaluation.runs_job"


class _ListByDefaultGroup(click.Group):
    """A click group that runs `list` if no command is named: `unreel runs FOLDER`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first not in {*self.commands, *self.get_help_option_names(ctx)}:
            if is_near_known_name(first, self.commands) and not Path(first).exists():
                raise build_unknown_command_error(first, self.commands, ctx)
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[FOLDER] [--json]")
        formatter.write_usage(ctx.command_path, "list|check|restore ...")


@click.group(cls=_ListByDefaultGroup)
def runs() -> None:
    """List the runs in a folder, check a run for damage, or restore an earlier version.

    Without a command, the runs below FOLDER are listed: `unreel runs` means `unreel runs list
    runs`.
    """


@runs.command("list", short_help="List runs with their numbers of answers and failures.")
@click.argument("folder", default="runs")
@json_option
def list_(*, folder: str, as_json: bool) -> None:
    """List the runs in FOLDER, a folder or s3://bucket/prefix (default `runs`).

    Each line shows the model, protocol, benchmark, and the number of answers and failures. Exits with
    status 1 if a run cannot be read.
    """
    if "://" not in folder and not Path(folder).is_dir():
        raise UnreadableSourceError(
            folder,
            "no such folder",
            "Name the folder that contains your runs, or start one with `unreel eval`",
        )
    find_runs = LazyImport(f"{_FIND}:find_runs", "eval").load()
    settings = read_environment_settings()
    rows = [_build_run_list_row(name, settings) for name in find_runs(folder, settings)]
    unreadable = [row for row in rows if row["problem"]]
    if as_json:
        print_json(rows)
    elif rows:
        columns = ["run", "reviewer", "protocol", "benchmark", "answered", "failed"]
        print_table(columns, [row | {"protocol": row["instrument"]} for row in rows])
        for row in unreadable:
            print_message(f"{row['run']}: {row['problem']}")
        for row in rows:
            if row["failed"] and not row["problem"]:
                print_message(
                    f"Retry the failures in {row['run']}: {format_retry_command(str(row['run']))}"
                )
    else:
        print_message(f"no run in {folder}. Start one with `unreel eval --out {folder}/NAME`")
    sys.exit(1 if unreadable else 0)


def _build_run_list_row(name: str, settings: EnvironmentSettings) -> dict[str, object]:
    row: dict[str, object] = {"run": name, "reviewer": "?", "instrument": "?", "benchmark": "?"}
    row |= {"answered": "?", "failed": "?", "problem": ""}
    try:
        run = LazyImport(f"{_FIND}:open_named_run", "eval").load()(name, settings)
        row |= {
            "reviewer": run.reviewer_name(),
            "instrument": str(run.scope.instrument),
            "benchmark": run.recipe.benchmark,
        }
        failures = run.answers.failures()
        answered = run.answers.count("failure_reason IS NULL")
    except UnreelError as error:
        return row | {"problem": str(error)}
    return row | {"answered": answered, "failed": sum(failures.values())}


@runs.command(short_help="Check a run for damage.")
@click.argument("run", shell_complete=list_run_completions)
@json_option
def check(*, run: str, as_json: bool) -> None:
    """Check RUN for damage: a folder or s3://bucket/prefix of `unreel eval` or `unreel curate`.

    Reads the recipe and all rows of the tables. Changes nothing. Exits with status 1 if something is damaged.
    """
    sys.exit(LazyImport(f"{_JOB}:check_run_and_print", "eval").load()(run, as_json=as_json))


@runs.command(short_help="Restore damaged tables to an earlier version.")
@click.argument("run", shell_complete=list_run_completions)
@json_option
def restore(*, run: str, as_json: bool) -> None:
    """Restore each damaged table of RUN to its latest intact version.

    Rows of later versions are lost; the next `unreel eval` asks their questions again. Copy RUN first if
    you want to keep them.
    """
    LazyImport(f"{_JOB}:restore_run_and_print", "eval").load()(run, as_json=as_json)
