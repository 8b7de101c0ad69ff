"""`unreel annotate up`: run Label Studio until the command is stopped."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import label_studio_state_option, ledger_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.option(
    "--program",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the Label Studio executable.  [default: label-studio on PATH]",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8080,
    show_default=True,
    help="TCP port of the server.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Network address on which the server listens. For access from other machines, use a reverse proxy with TLS.",
)
@label_studio_state_option
@ledger_option
@json_option
def up(*, as_json: bool, **options: Any) -> None:
    """Start a Label Studio server for annotators.

    The server stores its data in a second database next to the ledger's, or in a file for a trial. It
    listens on loopback, sign-up requires a link, and telemetry is off. Runs until Ctrl-C or SIGTERM,
    then exits with status 0 and leaves no process behind.
    """
    LazyImport("unreel.cli.annotate.up_job:run_label_studio", "annotate").load()(
        options, as_json=as_json
    )
