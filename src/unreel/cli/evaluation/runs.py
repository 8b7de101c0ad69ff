"""`unreel runs`: list of runs with their progress, check for damage, and repair."""

import sys
from pathlib import Path
from typing import Final

import click

from unreel.cli.completion import list_run_completions
from unreel.cli.lazy_group import build_unknown_command_error, is_near_known_name
from unreel.cli.output import (
    format_retry_command,
    json_option,
    print_json,
    print_message,
    print_table,
)
from unreel.core.errors import UnreadableSourceError, UnreelError
from unreel.core.registry import LazyImport
from unreel.core.settings import EnvironmentSettings, read_environment_settings

_FIND: Final = "unreel.evaluation.run_lookup"
_JOB: Final = "unreel.cli.evaluation.runs_job"


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
        formatter.write_usage(ctx.command_path, "list|check|repair ...")


@click.group(cls=_ListByDefaultGroup)
def runs() -> None:
    """List the runs in a folder, check a run for damage, or write a repaired copy.

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
        remedy = "Name the folder that contains your runs, or start one with `unreel eval`"
        raise UnreadableSourceError(folder, "no such folder", remedy)
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

    Reads the recipe, all rows of the tables and the start logs, and prints the name of a process that writes
    to the run. Changes nothing. Exits with status 1 if something is damaged.
    """
    sys.exit(LazyImport(f"{_JOB}:check_run_and_print", "eval").load()(run, as_json=as_json))


@runs.command(short_help="Write a repaired copy of a damaged run.")
@click.argument("run", shell_complete=list_run_completions)
@click.option(
    "--out",
    metavar="PLACE",
    help="New folder or s3:// prefix for the repaired copy.  [default: RUN-repaired]",
)
@json_option
def repair(*, run: str, out: str | None, as_json: bool) -> None:
    """Write the intact part of RUN to a new location. RUN is not changed.

    Unreadable rows are omitted, and the next `unreel eval` asks these questions again. Invalid rows are
    moved to a file, and one of several duplicate rows is kept.
    """
    sys.exit(
        LazyImport(f"{_JOB}:repair_run_copy_and_print", "eval").load()(run, out, as_json=as_json)
    )
