"""`unreel train compare`: compare two checkpoints on the clips that both judged."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unreel.cli.evaluation.compare import compare as compare_runs
from unreel.cli.evaluation.eval import eval_
from unreel.cli.options import layout_option
from unreel.cli.output import json_option, print_message, trusted_option
from unreel.core.errors import InvalidSettingError
from unreel.core.safe_names import make_safe_file_name

if TYPE_CHECKING:
    from unreel.reviewers.local.checkpoint import CheckpointInputSpec

_ASKED_WRONGLY = 2


@click.command("compare", short_help="Compare two checkpoints.")
@click.argument("first")
@click.argument("second")
@click.option(
    "--benchmark",
    type=click.Path(exists=True),
    metavar="PATH",
    help="Benchmark on which both checkpoints are evaluated. Not needed for runs.",
)
@click.option(
    "--protocol",
    help="Protocol of the questions.  [default: the protocol on which the checkpoint was trained]",
)
@click.option(
    "--split", help="Name of the benchmark split to use, for example test.  [default: all splits]"
)
@layout_option
@click.option("--out", help="Output folder for the two runs.  [default: compare-FIRST-SECOND]")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Name of a metric in the scorecard, for example `balanced`. Repeatable.  [default: all metrics]",
)
@trusted_option
@json_option
def compare_checkpoints(
    *,
    first: str,
    second: str,
    out: str | None,
    metrics: tuple[str, ...],
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare FIRST and SECOND, which are runs of `unreel eval` or checkpoints: differences with intervals.

    A checkpoint is evaluated on --benchmark like `unreel eval --model local/CHECKPOINT`; a second call
    sends only the questions without an answer. Both are then compared like `unreel compare`.
    """
    folder = out or "-".join(
        ["compare", *(make_safe_file_name(Path(n).name) for n in (first, second))]
    )
    runs = tuple(
        _evaluate_if_checkpoint(name, f"{folder}/{side}", **asked)
        for side, name in (("first", first), ("second", second))
    )
    click.get_current_context().invoke(compare_runs, runs=runs, metrics=metrics, as_json=as_json)


def _evaluate_if_checkpoint(
    name: str, out: str, *, benchmark: str | None, trusted: bool, **asked: Any
) -> str:
    """Return the run `name`; if `name` is a checkpoint, evaluate it and return its run `out`."""
    from unreel.reviewers.local.checkpoint import ADAPTER, CONFIG, FILE, read_checkpoint_input_spec

    checkpoint = Path(name)
    if not any((checkpoint / file).is_file() for file in (FILE, CONFIG, ADAPTER)):
        return name
    input_spec = read_checkpoint_input_spec(checkpoint)
    if benchmark is None:
        raise InvalidSettingError(
            "--benchmark",
            f"{name} is a checkpoint, and no benchmark is named",
            "Name the benchmark, or two runs of `unreel eval`",
        )
    asked["protocol"] = asked["protocol"] or _require_single_trained_protocol(name, input_spec)
    print_message(f"asking {name}")
    try:
        # Its scorecard goes to stderr, because stdout is for the comparison.
        with contextlib.redirect_stdout(sys.stderr):
            click.get_current_context().invoke(
                eval_,
                benchmark=benchmark,
                models=(f"local/{checkpoint}",),
                out=out,
                trusted=trusted,
                **asked,
            )
    except SystemExit as ended:
        if ended.code == _ASKED_WRONGLY:
            raise
    return out


def _require_single_trained_protocol(name: str, input_spec: "CheckpointInputSpec | None") -> str:
    known = [] if input_spec is None else [each.protocol for each in input_spec.instruments]
    if len(known) == 1:
        return known[0]
    raise InvalidSettingError(
        "--protocol",
        f"{name} was trained on {' and '.join(known) or 'no protocol'}",
        "Name the protocol for both",
    )
