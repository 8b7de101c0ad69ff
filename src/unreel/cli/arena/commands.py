"""Commands of `unreel arena`: their options; the implementations are imported when they run."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import ledger_option
from unreel.cli.arena import only_entrants_option, season_folder_options
from unreel.cli.options import allow_outside_option, list_path_completions, media_option
from unreel.cli.output import (
    echo,
    json_option,
    print_json,
    print_message,
    table_format_option,
    trusted_option,
)
from unreel.cli.progress import ProgressMeter
from unreel.core.registry import LazyImport


@click.command()
@click.argument("season", shell_complete=list_path_completions)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="Output folder for the pages.",
)
@media_option("licensed", "link", "copy", "none")
@click.option(
    "--resamples",
    type=click.IntRange(100),
    help="Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]",
)
@json_option
def site(*, as_json: bool, **options: Any) -> None:
    """Write static web pages about SEASON: both leaderboards, the detection matrix, and a page per entrant.

    Sends nothing. SEASON is its TOML file, or the folder of the season.
    """
    LazyImport("unreel.cli.arena.rank_job:write_arena_site", "eval").load()(
        options, as_json=as_json
    )


@click.command()
@season_folder_options
@click.option(
    "--against",
    metavar="SEASON",
    help="Folder of another season with the same clips. The answers of both seasons are compared.",
)
@table_format_option
@json_option
def ablations(*, as_json: bool, **options: Any) -> None:
    """Print the effect of each change on the answers of SEASON: paired differences with intervals.

    Compares conditions that differ in one setting, settings of a creator, and changed real clips with
    the originals, and estimates each reviewer's bias towards "real". Sends nothing.
    """
    LazyImport("unreel.cli.arena.rank_job:print_season_ablations", "eval").load()(
        options, as_json=as_json
    )


@click.command()
@season_folder_options
@click.option(
    "--title",
    "conditions",
    multiple=True,
    metavar="TITLE",
    help="Title of a condition to rank. Repeatable.  [default: all conditions]",
)
@click.option(
    "--resamples",
    type=click.IntRange(100),
    help="Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]",
)
@click.option(
    "--nuisance",
    "nuisances",
    multiple=True,
    metavar="NAME",
    help="Clip property for which the ranking is adjusted: length, resolution or sound. Repeatable.",
)
@table_format_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the reviewers and creators of SEASON by the stored answers. Sends nothing.

    SEASON is its TOML file, or the folder of the season. Creators of a preference season are ranked by the
    fraction of pairs in which their clip is taken for the real one.
    """
    LazyImport("unreel.cli.arena.rank_job:print_season_leaderboards", "eval").load()(
        options, as_json=as_json
    )


@click.command()
@season_folder_options
@click.option(
    "--campaign", metavar="NAME", help="Annotation campaign whose votes are read from the ledger."
)
@ledger_option
@click.option(
    "--votes",
    metavar="FILE",
    shell_complete=list_path_completions,
    help="CSV or Parquet table of votes, with the columns name (of the clip), voter and label.",
)
@click.option(
    "--named",
    is_flag=True,
    help="Show the names of the annotators of --campaign instead of aliases such as annotator-1.",
)
@json_option
def people(*, as_json: bool, **options: Any) -> None:
    """Store human votes with SEASON: `unreel arena rank` then ranks each voter and their majority.

    Without --campaign or --votes, the votes of the benchmark are used. Votes stored before are replaced.
    """
    LazyImport("unreel.cli.arena.people_job:store_season_votes", "eval").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("entry", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--season",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("season.toml"),
    show_default=True,
    help="File of the season, whose scenes and real clips the entry is compared with.",
)
@allow_outside_option
@trusted_option
@json_option
def check(*, as_json: bool, **options: Any) -> None:
    """Audit ENTRY, a folder with one clip for each scene, before it joins a season.

    Checks names, decoding, length, frame rate, size, sound, licence, watermarks, and file properties
    that reveal the label. Sends nothing, and changes nothing.

    Exits with status 1 if the entry has an error.
    """
    sys.exit(
        LazyImport("unreel.cli.arena.check_job:print_entry_audit", "curate").load()(
            options, as_json=as_json
        )
    )


@click.command()
@season_folder_options
@only_entrants_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the missing clips and answers. Generate and send nothing.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Execution engine. local: this process; ray: Ray Data (needs the extra `ray`).",
)
@click.option(
    "--retry-failed", is_flag=True, help="Retry the clips and answers that failed in earlier calls."
)
@allow_outside_option
@trusted_option
@json_option
def run(*, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Run SEASON: generate the missing clips, and send every missing question to every reviewer.

    SEASON is a TOML file: see docs/arena.md. A second call sends only questions without an answer,
    also after kill -9; for a new creator or reviewer, only its own questions are sent.

    Exits with status 1 if a clip or an answer failed, or a reviewer could not be queried.
    """
    with ProgressMeter() as meter:
        meter.tell("getting ready")
        word = "forecast_season_run" if dry_run else "run_season_command"
        tell = LazyImport(f"unreel.cli.arena.run_job:{word}", "eval").load()(
            meter, options, as_json=as_json
        )
    sys.exit(tell())


@click.command()
@season_folder_options
@only_entrants_option
@click.option(
    "--pin",
    is_flag=True,
    help="Write the hash of the benchmark to the SEASON file. Later runs then reject a changed benchmark.",
)
@allow_outside_option
@json_option
def plan(*, as_json: bool, **options: Any) -> None:
    """Print the clips and questions that SEASON still needs, and the hash of its benchmark.

    Sends nothing and generates no clip.
    """
    with ProgressMeter() as meter:
        meter.tell("counting")
        tell = LazyImport("unreel.cli.arena.run_job:forecast_season_run", "eval").load()(
            meter, options, as_json=as_json
        )
    sys.exit(tell())


@click.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("season.toml"),
    show_default=True,
    help="Season file to write. An existing file is never replaced.",
)
@json_option
def init(*, benchmark: Path, out: Path, as_json: bool) -> None:
    """Write a commented season file for BENCHMARK, with the creators of its clips."""
    creators = LazyImport("unreel.arena.season.recipe:write_season_template")(benchmark, out)
    if as_json:
        print_json({"season": str(out), "creators": creators})
        return
    print_message(f"next: unreel arena plan {out} --pin")
    echo(out)
