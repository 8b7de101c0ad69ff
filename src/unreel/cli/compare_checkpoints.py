"""`unreel train compare`: compare two checkpoints on the clips that both judged."""

import contextlib
import sys
from pathlib import Path

import click

from unreel.api import training as api
from unreel.api.evaluation import EvalSettings
from unreel.api.runs import CompareSettings
from unreel.cli.compare import compare_and_print
from unreel.cli.eval import evaluate_and_print
from unreel.cli.options import settings_options
from unreel.cli.output import json_option, print_message
from unreel.core.safe_names import make_safe_file_name

_WRONG_USAGE = 2


@click.command("compare", short_help="Compare two checkpoints.")
@settings_options(api.CompareCheckpointSettings)
@json_option
def compare_checkpoints(settings: api.CompareCheckpointSettings, *, as_json: bool) -> None:
    """Compare FIRST and SECOND, which are runs of `unreel eval` or checkpoints: differences with intervals.

    A checkpoint is evaluated on --benchmark like `unreel eval --model local/CHECKPOINT`; a second call
    sends only the questions without an answer. Both are then compared like `unreel compare`.
    """
    sources = {"first": settings.first, "second": settings.second}
    folder = settings.out or "-".join(
        ["compare", *(make_safe_file_name(Path(source).name) for source in sources.values())]
    )
    runs = tuple(
        _evaluate_if_checkpoint(source, f"{folder}/{name}", settings)
        for name, source in sources.items()
    )
    compare_and_print(CompareSettings(runs=runs, metrics=settings.metrics), as_json=as_json)


def _evaluate_if_checkpoint(source: str, out: str, settings: api.CompareCheckpointSettings) -> str:
    """Return the run `source`; if it is a checkpoint, evaluate it and return its run `out`."""
    if not api.is_checkpoint(source):
        return source
    evaluation = EvalSettings(
        benchmark=api.require_benchmark(settings, source),
        models=(f"local/{Path(source)}",),
        protocol=settings.protocol or api.require_trained_protocol(source),
        out=out,
        layout=settings.layout,
        split=settings.split,
        trusted=settings.trusted,
    )
    print_message(f"asking {source}")
    try:
        # Its scorecard goes to stderr, because stdout is for the comparison.
        with contextlib.redirect_stdout(sys.stderr):
            evaluate_and_print(evaluation, as_json=False)
    except SystemExit as ended:
        if ended.code == _WRONG_USAGE:
            raise
    return out
