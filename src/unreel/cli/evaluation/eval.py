"""`unreel eval`: evaluate models on a benchmark."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.completion import list_model_completions, list_path_completions
from unreel.cli.options import (
    ProtocolParamType,
    accept_changed_option,
    allow_outside_option,
    column_map_option,
    condition_option,
    engine_option,
    frame_sampling_options,
    layout_option,
    model_input_options,
    weak_cage_option,
)
from unreel.cli.output import json_option, trusted_option
from unreel.cli.progress import ProgressMeter
from unreel.core.registry import LazyImport
from unreel.core.settings import read_environment_settings
from unreel.reviewers.endpoint.servers import list_model_endpoints


@click.command("eval")
@click.argument("benchmark", required=False, shell_complete=list_path_completions)
@click.option(
    "--model",
    "models",
    multiple=True,
    shell_complete=list_model_completions,
    help="Model: provider/name, provider/name@URL, local/FOLDER, `recorded`, or a baseline (coin, always-real, always-generated, metadata, motion). Repeatable; models run one after the other.",
)
@click.option(
    "--protocol",
    type=ProtocolParamType(),
    help="Protocol: where, when and why a clip looks fake (trace); a score from 1 to 5 (realism); real or generated (reality); which of two is real (preference); every generated segment of a long clip (locate).",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, path_type=Path),
    help="TOML file with these settings. Options on the command line take precedence.",
)
@condition_option(multiple=True)
@frame_sampling_options
@click.option(
    "--out",
    metavar="PLACE",
    help="Run folder or s3://bucket/prefix; with several models, the parent folder of their runs.  [default: runs/MODEL-PROTOCOL-BENCHMARK]",
)
@engine_option
@layout_option
@column_map_option
@allow_outside_option
@weak_cage_option
@accept_changed_option
@click.option("--split", help="Evaluate only this split.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Number of clips to sample (by seed, balanced over labels and creators).",
)
@click.option(
    "--recorded",
    metavar="FILE",
    help="JSON Lines file of stored answers, for `--model recorded`.",
)
@model_input_options
@click.option("--max-connections", type=click.IntRange(1), help="Number of concurrent requests.")
@click.option("--max-requests", type=click.IntRange(1), help="Maximum number of requests.")
@click.option("--max-cost-usd", type=float, help="Maximum cost in USD; needs --prices.")
@click.option(
    "--prices",
    metavar="FILE",
    help="TOML file of prices per model, used to compute the cost of the run.",
)
@click.option(
    "--deadline",
    "deadline_s",
    type=float,
    help="Timeout of one question in seconds, retries included.",
)
@click.option("--retry-failed", is_flag=True, help="Retry failed questions.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Dry run: report the number of questions and tokens and, with --prices, the cost. Send nothing.",
)
@click.option(
    "--fail-on-error",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Maximum fraction of failed questions for exit status 0.",
)
@trusted_option
@json_option
def eval_(**typed: Any) -> None:
    """Evaluate models on a benchmark: send every question, store the answers and score them.

    BENCHMARK is a folder or a table of clips with their ground truth; clips may be at s3:// locations.
    A second call with the same --out sends only the questions without an answer, also after kill -9;
    `unreel eval --out RUN` alone continues RUN with its own settings.
    """
    with ProgressMeter() as meter:
        meter.tell("getting ready")
        if not typed["dry_run"]:
            # What reads and writes tables takes its time to load, and a missing key needs none of it.
            list_model_endpoints(typed["models"], key_hosts=read_environment_settings().key_hosts)
        tell = LazyImport("unreel.cli.evaluation.eval_job:evaluate_models", "eval").load()(
            meter, **typed
        )
    sys.exit(tell())
