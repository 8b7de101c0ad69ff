"""Implementation of `unreel annotate up`, imported when it runs."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from unreel.annotation.ledger.connection import resolve_ledger_url
from unreel.annotation.studio.server import (
    create_studio_database,
    find_label_studio_program,
    start_label_studio,
)
from unreel.annotation.studio.settings import (
    LabelStudioServerSettings,
    find_studio_connection,
    get_studio_state_folder,
)
from unreel.cli.output import SILENCE, echo, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter
from unreel.core.settings import read_environment_settings


def run_label_studio(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Start Label Studio, print its URL, and keep it running until the command is stopped."""
    settings = read_environment_settings()
    folder = get_studio_state_folder(settings, options["state"])
    plan = LabelStudioServerSettings(
        program=find_label_studio_program(options["program"]),
        folder=folder,
        host=options["host"],
        port=options["port"],
        database=create_studio_database(resolve_ledger_url(options["ledger"], settings)),
    )
    with ExitStack() as stack:
        with ProgressMeter() as meter:
            meter.tell("starting Label Studio")
            server = stack.enter_context(start_label_studio(plan, tell=meter.tell))
        try:
            studio = find_studio_connection(folder)
            if as_json:
                print_json({"address": studio.address, "state": folder, "media": studio.media})
            else:
                print_message("Label Studio runs. Ctrl-C ends it. Its address:")
                echo(studio.address)
            SILENCE.stop()
            server.wait()
        except StopSignalReceived:
            print_message("unreel: ending Label Studio")
