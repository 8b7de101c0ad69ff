"""Start of Label Studio from the command line."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from unreel.annotation.ledger.connection import resolve_ledger_url
from unreel.annotation.studio.server import find_program, make_database, start_studio
from unreel.annotation.studio.settings import StudioPlan, find_connection, studio_folder
from unreel.cli.output import SILENCE, echo, print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.cli.stop_signals import StopSignal
from unreel.core.settings import read_settings


def run_studio(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Start the server, print its URL, and keep it running until it is stopped."""
    settings = read_settings()
    folder = studio_folder(settings, options["state"])
    plan = StudioPlan(
        program=find_program(options["program"]),
        folder=folder,
        host=options["host"],
        port=options["port"],
        database=make_database(resolve_ledger_url(options["ledger"], settings)),
    )
    with ExitStack() as held:
        with ProgressMeter() as meter:
            meter.tell("starting Label Studio")
            server = held.enter_context(start_studio(plan, tell=meter.tell))
        try:
            told = find_connection(folder)
            if as_json:
                print_json({"address": told.address, "state": folder, "media": told.media})
            else:
                print_message("Label Studio runs. Ctrl-C ends it. Its address:")
                echo(told.address)
            SILENCE.stop()
            server.wait()
        except StopSignal:
            print_message("unreel: ending Label Studio")
