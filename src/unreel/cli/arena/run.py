"""Commands `unreel arena init`, `plan` and `run`."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.arena import only_entrants_option, season_folder_options
from unreel.cli.options import allow_outside_option, weak_cage_option
from unreel.cli.output import echo, json_option, print_json, print_message, trusted_option
from unreel.cli.progress import ProgressMeter
from unreel.core.registry import LazyImport


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
@weak_cage_option
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
