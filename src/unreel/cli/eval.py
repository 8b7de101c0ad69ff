"""`unreel eval`: a reviewer over a benchmark."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.columns import layout_option, map_option
from unreel.cli.completing import complete_models, complete_paths
from unreel.cli.consent import changed_option, outside_option, weak_cage_option
from unreel.cli.instrument import InstrumentName
from unreel.cli.meter import Meter
from unreel.cli.output import json_option, trusted_option
from unreel.cli.shared_options import condition_option
from unreel.cli.showing import showing_options
from unreel.core.registry import Lazy
from unreel.core.settings import read_settings
from unreel.reviewers.endpoint.keys import contacts


@click.command("eval")
@click.argument("benchmark", required=False, shell_complete=complete_paths)
@click.option(
    "--model",
    "models",
    multiple=True,
    shell_complete=complete_models,
    help="Who answers: provider/name, provider/name@URL, local/FOLDER, `recorded`, or a floor (coin, always-real, "
    "always-generated, metadata, motion). Repeat it to ask several, one after the other.",
)
@click.option(
    "--protocol",
    type=InstrumentName(),
    help="What is asked: where, when and why a clip looks fake; a score from 1 to 5; real or "
    "generated; which of two is real.",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, path_type=Path),
    help="TOML file with these settings; a flag goes before it.",
)
@condition_option(multiple=True)
@click.option("--nframe", type=click.IntRange(1), help="Show N frames: sampling=uniform-N.")
@click.option("--fps", help="Show F frames of each second: sampling=fps-F.")
@click.option(
    "--out",
    metavar="PLACE",
    help="Where the run is kept: a folder, or s3://bucket/prefix; of several models, the folder that "
    "holds their runs.  [default: runs/MODEL-PROTOCOL-BENCHMARK]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="What runs the work: this process, or Ray Data.",
)
@layout_option
@map_option
@outside_option
@weak_cage_option
@changed_option
@click.option("--split", help="Ask about this split alone.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Ask about so many clips, drawn by seed, both sides and all creators alike.",
)
@click.option(
    "--recorded", metavar="FILE", help="JSONL with the answers that the model `recorded` replays."
)
@showing_options
@click.option("--max-connections", type=click.IntRange(1), help="Questions under way at once.")
@click.option("--max-requests", type=click.IntRange(1), help="Stop asking after this many.")
@click.option("--max-cost-usd", type=float, help="Stop asking when this is spent; needs --prices.")
@click.option("--prices", metavar="FILE", help="TOML file of prices per model, to tell the cost.")
@click.option(
    "--deadline", "deadline_s", type=float, help="Seconds for one question, retries included."
)
@click.option("--retry-failed", is_flag=True, help="Ask again what failed before.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Ask nobody: tell how many questions, tokens and, with --prices, how much money it takes.",
)
@click.option(
    "--fail-on-error",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of failed questions up to which the status is still 0.",
)
@trusted_option
@json_option
def eval_(**typed: Any) -> None:
    """Put every question about BENCHMARK to one reviewer or several, keep the answers, and score them.

    BENCHMARK is a folder or a table of clips with their truth; clips may lie at s3:// locations.
    A second call with the same --out asks only what has no answer yet, after a kill -9 too;
    `unreel eval --out RUN` alone goes on with what RUN was started with.
    """
    with Meter() as meter:
        meter.tell("getting ready")
        if not typed["dry_run"]:
            # What reads and writes tables takes its time to load, and a missing key needs none of it.
            contacts(typed["models"], key_hosts=read_settings().key_hosts)
        tell = Lazy("unreel.cli.eval_job:eval_models", "eval").load()(meter, **typed)
    sys.exit(tell())
