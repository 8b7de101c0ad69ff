"""`unreel runs` and `report`: list, check and restoration of runs, and pages about them."""

import sys
from pathlib import Path

import click

from unreel.api import runs as api
from unreel.cli.lazy_group import build_unknown_command_error, is_near_known_name
from unreel.cli.options import list_run_completions, settings_options
from unreel.cli.output import (
    echo,
    format_retry_command,
    json_option,
    print_json,
    print_message,
    print_table,
)


@click.command()
@settings_options(api.ReportSettings)
@json_option
def report(settings: api.ReportSettings, *, as_json: bool) -> None:
    """Write an HTML report about RUNS: leaderboards, the worst mistakes of each model, and all clips with answers.

    A run is a folder or s3://bucket/prefix of `unreel eval`; a folder of runs means all of them.
    The report opens from disk and from any web server. Sends nothing.
    """
    written = api.write_report(settings, print_message)
    if as_json:
        print_json(written)
        return
    n = written.n_entrants
    print_message(
        f"{'1 reviewer' if n == 1 else f'{n} reviewers and baselines'}, {written.n_clips:,} clips, "
        f"{written.n_answers:,} answers; {written.size_bytes / 1e6:.1f} MB without media"
    )
    if written.missing_media and settings.media != "none":
        print_message(f"  {written.missing_media} clips could not be linked or copied")
    echo(written.page)


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
    rows = api.list_runs(folder)
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


@runs.command(short_help="Check a run for damage.")
@click.argument("run", shell_complete=list_run_completions)
@json_option
def check(*, run: str, as_json: bool) -> None:
    """Check RUN for damage: a folder or s3://bucket/prefix of `unreel eval` or `unreel curate`.

    Reads the recipe and all rows of the tables. Changes nothing. Exits with status 1 if something is damaged.
    """
    uri, parts = api.check_run(run)
    is_intact = not any(part.problem for part in parts)
    if as_json:
        print_json({"run": uri, "intact": is_intact, "parts": parts})
        sys.exit(0 if is_intact else 1)
    rows = [
        {
            "part": part.name,
            "content": part.content,
            "problem": part.problem or "none",
            "intact_version": "" if part.intact_version is None else part.intact_version,
        }
        for part in parts
    ]
    print_table(("part", "content", "problem", "intact_version"), rows)
    if is_intact:
        print_message(f"{uri} is intact")
    elif any(part.intact_version is not None for part in parts):
        print_message(f"Restore the intact versions: `unreel runs restore {uri}`")
    else:
        print_message(
            "Move damaged parts away, then run the same command as before: it writes them again"
        )
    sys.exit(0 if is_intact else 1)


@runs.command(short_help="Restore damaged tables to an earlier version.")
@click.argument("run", shell_complete=list_run_completions)
@json_option
def restore(*, run: str, as_json: bool) -> None:
    """Restore each damaged table of RUN to its latest intact version.

    Rows of later versions are lost; the next `unreel eval` asks their questions again. Copy RUN first if
    you want to keep them.
    """
    uri, versions = api.restore_run(run)
    if as_json:
        print_json({"run": uri, "versions": versions})
        return
    if not versions:
        print_message(f"{uri} has no damaged table")
    for name, version in versions.items():
        print_message(f"{name}: restored to version {version}")
