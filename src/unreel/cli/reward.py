"""`unreel reward`: rewards of generated clips for trainers of video generators."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from unreel.api import reward as api
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import SILENCE, echo, json_option, print_json, print_message, print_table
from unreel.cli.process_signals import StopSignalReceived
from unreel.core.estimate import Estimate


@click.group(cls=LazyCommandGroup)
def reward() -> None:
    """Score generated clips as a reward for training: 0 to 1 (1 = looks real), or a failure."""


@reward.command(short_help="Serve rewards over HTTP.")
@settings_options(api.ServeSettings)
def serve(settings: api.ServeSettings) -> None:
    """Serve rewards over HTTP.

    Clients send clips to POST /v1/rewards; the page /docs describes the API.

    Runs until Ctrl-C or SIGTERM, finishes the current requests, and exits with status 0.
    """

    def announce(address: str) -> None:
        SILENCE.stop()
        print_message(f"unreel reward: {address}")

    try:
        api.serve_rewards(settings, announce)
    except StopSignalReceived:
        print_message("unreel reward: stopped")


@reward.command(short_help="Calibrate rewards on the answers of a run.")
@settings_options(api.CalibrateSettings)
@json_option
def calibrate(settings: api.CalibrateSettings, *, as_json: bool) -> None:
    """Fit the probability that a clip is real to the stored answers of RUN, a run of `unreel eval`.

    Sends nothing. The printed Brier score is cross-validated: each scene is scored by a fit without it.
    """
    fitted = api.calibrate(settings)
    if as_json:
        print_json(asdict(fitted) | {"out": str(settings.out)})
        return
    for name, score in (("before", fitted.brier_before), ("after", fitted.brier)):
        value, low, high = score
        echo(f"Brier score {name} calibration: {value:.4f} [{low:.4f}, {high:.4f}]")
    print_message(
        f"{fitted.n_clips} clips of {fitted.n_scenes} scenes, {fitted.share_real:.0%} real: where another "
        f"share is real, the probabilities are not calibrated; written to {settings.out}"
    )


@reward.command(short_help="Write the client file for a trainer.")
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
    api.write_client(out)
    print_message(f"wrote {out}")


@reward.command(short_help="Check a reward log for reward hacking.")
@settings_options(api.WatchSettings)
@json_option
def watch(settings: api.WatchSettings, *, as_json: bool) -> None:
    """Search LOG, written by `unreel reward serve --log`, for signs of reward hacking.

    Exits with status 1 if a guard raises an alarm.
    """
    log = api.watch_log(settings)
    alarms = [result.guard for result in log.guards if result.alarm]
    if as_json:
        document = {"alarms": alarms, "n_steps": log.n_steps, "guards": log.guards}
        print_json(document | {"page": log.page})
    else:
        print_table(tuple(log.cells[0]), log.cells)
        if log.page:
            echo(log.page)
        if log.n_late:
            print_message(f"{log.n_late} rows came after their step was closed: excluded")
        n_measured = sum(isinstance(result.estimate, Estimate) for result in log.guards)
        none = f"none ({n_measured} of {len(log.guards)} guards measured)"
        if n_measured or alarms:
            print_message(f"alarms: {', '.join(alarms) or none}")
        else:
            print_message("no guard could be measured yet")
    sys.exit(1 if alarms else 0)
