"""`unreel reward`: rewards of generated clips for trainers of video generators."""

import sys
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import LazyImport

if TYPE_CHECKING:
    from unreel.protocols.protocol import Mode
    from unreel.rewards.calibration import Method


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for a page with the curves. Without it, no page is written.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Maximum probability of any alarm in a training without reward hacking.",
)
@json_option
def watch(*, log: Path, out: Path | None, alpha: float, as_json: bool) -> None:
    """Search LOG, written by `unreel reward serve --log`, for signs of reward hacking.

    Exits with status 1 if a guard raises an alarm.
    """
    from unreel.core.estimate import Estimate
    from unreel.rewards.guards.evaluate import evaluate_guards_on_steps
    from unreel.rewards.guards.page import COLUMNS, format_guard_cells, write_guard_page
    from unreel.rewards.guards.result import RewardGuardLimits
    from unreel.rewards.guards.training_steps import TrainingStepCollector, iter_reward_log_rows

    settings, collector = RewardGuardLimits(alpha=alpha), TrainingStepCollector()
    collector.add(iter_reward_log_rows(log))
    steps = collector.finish()
    results = evaluate_guards_on_steps(steps, settings)
    page = out and write_guard_page(results, steps, out, title=log.name, limits=settings)
    alarms = [result.guard for result in results if result.alarm]
    if as_json:
        print_json({"alarms": alarms, "n_steps": len(steps), "guards": results, "page": page})
    else:
        print_table(COLUMNS, map(format_guard_cells, results))
        if page:
            echo(page)
        if collector.n_late:
            print_message(f"{collector.n_late} rows came after their step was closed: excluded")
        n_measured = sum(isinstance(result.estimate, Estimate) for result in results)
        none = f"none ({n_measured} of {len(results)} guards measured)"
        if n_measured or alarms:
            print_message(f"alarms: {', '.join(alarms) or none}")
        else:
            print_message("no guard could be measured yet")
    sys.exit(1 if alarms else 0)


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
    print_message(
        f"{fitted.n_clips} clips of {fitted.n_scenes} scenes, {fitted.share_real:.0%} real: where another "
        f"share is real, the probabilities are not calibrated; written to {out}"
    )


_WORDS = {
    "serve": LazyCommand(
        LazyImport("unreel.cli.reward.serve:serve", "reward"), "Serve rewards over HTTP."
    ),
    "calibrate": LazyCommand(
        LazyImport("unreel.cli.reward:calibrate"), "Calibrate rewards on the answers of a run."
    ),
    "client": LazyCommand(
        LazyImport("unreel.cli.reward:client"), "Write the client file for a trainer."
    ),
    "watch": LazyCommand(
        LazyImport("unreel.cli.reward:watch"), "Check a reward log for reward hacking."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def reward() -> None:
    """Score generated clips as a reward for training: 0 to 1 (1 = looks real), or a failure."""


@click.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the Python file to write, for example unreel_reward_client.py.",
)
def client(out: Path) -> None:
    """Write the client of the reward service as one file.

    The file needs only Python 3.9 and its standard library. Copy it into the environment of your trainer.
    """
    source = files("unreel.rewards.client") / "unreel_reward_client.py"
    target = out.absolute()
    OutputDirectory(target.parent, published=True).write(target.name, source.read_bytes())
    print_message(f"wrote {out}")
