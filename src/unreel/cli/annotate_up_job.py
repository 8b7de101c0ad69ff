"""Starts Label Studio from what was typed."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from unreel.annotate.ledger.opening import ledger_address
from unreel.annotate.studio.server import find_program, make_database, running
from unreel.annotate.studio.settings import StudioPlan, find_connection, studio_folder
from unreel.cli.meter import Meter
from unreel.cli.output import SILENCE, echo, print_json, say
from unreel.cli.stopping import Stopped
from unreel.core.settings import read_settings


def run_studio(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Start it, tell where it is, and hold it until somebody ends it."""
    settings = read_settings()
    folder = studio_folder(settings, given["state"])
    plan = StudioPlan(
        program=find_program(given["program"]),
        folder=folder,
        host=given["host"],
        port=given["port"],
        database=make_database(ledger_address(given["ledger"], settings)),
    )
    with ExitStack() as held:
        with Meter() as meter:
            meter.tell("starting Label Studio")
            server = held.enter_context(running(plan, tell=meter.tell))
        try:
            told = find_connection(folder)
            if as_json:
                print_json({"address": told.address, "state": folder, "media": told.media})
            else:
                say("Label Studio runs. Ctrl-C ends it. Its address:")
                echo(told.address)
            SILENCE.stop()
            server.wait()
        except Stopped:
            say("unreel: ending Label Studio")
