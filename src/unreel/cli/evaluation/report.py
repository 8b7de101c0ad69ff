"""`unreel report`: write runs as HTML pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unreel.cli.completion import list_run_completions
from unreel.cli.options import media_option, run_benchmark_options
from unreel.cli.output import echo, json_option, print_json, print_message
from unreel.core.registry import LazyImport
from unreel.core.settings import read_environment_settings

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
    write_report = LazyImport("unreel.report.site:write_report", "report").load()
    open_all_told = LazyImport(
        "unreel.cli.evaluation.runs_job:open_runs_with_identity_warning", "report"
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
