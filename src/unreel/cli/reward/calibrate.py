"""`unreel reward calibrate`: fit the probability that a clip is real on the answers of a run."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.cli.output import echo, json_option, print_json, print_message

if TYPE_CHECKING:
    from unreel.protocols.protocol import Mode
    from unreel.rewards.calibration import Method


@click.command()
@click.argument("run")
@click.option(
    "--method",
    type=click.Choice(["isotonic", "platt"]),
    default="isotonic",
    show_default=True,
    help="Calibration method. isotonic: isotonic regression; platt: Platt scaling.",
)
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="lenient",
    show_default=True,
    help="Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations. Use the same parser for `unreel reward serve`.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default="reward-calibration.json",
    show_default=True,
    help="JSON file for the calibration, to be used by `unreel reward serve --calibration`.",
)
@json_option
def calibrate(*, run: str, method: "Method", parser: "Mode", out: Path, as_json: bool) -> None:
    """Fit the probability that a clip is real to the stored answers of RUN, a run of `unreel eval`.

    Sends nothing. The printed Brier score is cross-validated: each scene is scored by a fit without it.
    """
    from unreel.core.settings import read_environment_settings
    from unreel.evaluation.run_lookup import open_named_run
    from unreel.rewards.calibration import fit_calibration_on_run

    opened = open_named_run(run, read_environment_settings())
    fitted = fit_calibration_on_run(opened, method=method, mode=parser)
    fitted.write(out)
    if as_json:
        print_json(asdict(fitted) | {"out": str(out)})
        return
    for name, score in (("before", fitted.brier_before), ("after", fitted.brier)):
        value, low, high = score
        echo(f"Brier score {name} calibration: {value:.4f} [{low:.4f}, {high:.4f}]")
    print_message(f"{fitted.n_clips} clips of {fitted.n_scenes} scenes; written to {out}")
