"""`unreel eval`: evaluate models on a benchmark."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.options import (
    ProtocolParamType,
    accept_changed_option,
    allow_outside_option,
    column_map_option,
    condition_option,
    engine_option,
    frame_sampling_options,
    layout_option,
    list_model_completions,
    list_path_completions,
    model_input_options,
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
    help="Model to evaluate: provider/name, provider/name@URL, NAME or NAME@URL of `unreel models list`, local/FOLDER, recorded (see --recorded), or a baseline: coin, always-real, always-generated, metadata, motion. Repeatable.",
)
@click.option(
    "--protocol",
    type=ProtocolParamType(),
    help="Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; preference: which of two clips is real; locate: every generated segment of a long clip.",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, path_type=Path),
    help="TOML file with the settings of the evaluation. Command-line options take precedence.",
)
@condition_option(multiple=True)
@frame_sampling_options
@click.option(
    "--out",
    metavar="PLACE",
    help="Folder or s3://bucket/prefix of the run, which stores the answers. With several models, each run is a subfolder.  [default: runs/MODEL-PROTOCOL-BENCHMARK]",
)
@engine_option
@layout_option
@column_map_option
@allow_outside_option
@accept_changed_option
@click.option(
    "--split", help="Name of the benchmark split to use, for example test.  [default: all splits]"
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Number of clips in a random sample, balanced over labels and creators.  [default: all clips]",
)
@click.option(
    "--recorded",
    metavar="FILE",
    help="JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model.",
)
@model_input_options
@click.option(
    "--max-connections",
    type=click.IntRange(1),
    help="Maximum number of concurrent questions to a model.  [default: 16]",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    help="Maximum number of requests in one call of this command.  [default: no limit]",
)
@click.option(
    "--max-cost-usd",
    type=float,
    help="Maximum cost of the run in US dollars, including earlier calls. Requires --prices.  [default: no limit]",
)
@click.option(
    "--prices",
    metavar="FILE",
    help="TOML file with the token prices of each model, from which the cost is computed.",
)
@click.option(
    "--deadline",
    "deadline_s",
    type=float,
    help="Timeout of one question in seconds, including retries.  [default: 120]",
)
@click.option(
    "--retry-failed", is_flag=True, help="Retry the questions that failed in earlier calls."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the number of questions and tokens, and with --prices the estimated cost. Send nothing.",
)
@click.option(
    "--fail-on-error",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Maximum fraction of failed questions for exit status 0. With more failures, the status is 1.",
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
            # Report a missing key first, because the modules for tables take time to import.
            list_model_endpoints(typed["models"], key_hosts=read_environment_settings().key_hosts)
        tell = LazyImport("unreel.cli.evaluation.eval_job:evaluate_models", "eval").load()(
            meter, **typed
        )
    sys.exit(tell())
