"""`unreel desk` and `unreel desk verify`."""

import sys
import threading
import webbrowser
from pathlib import Path

import click

from unreel.api import desk as api
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import SILENCE, echo, json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived

_UNSIGNED_STATUS = 3
"""Exit status for a bundle that is intact and has no signature."""


@click.group(cls=LazyCommandGroup, invoke_without_command=True)
@settings_options(api.DeskSettings)
@click.pass_context
def desk(context: click.Context, settings: api.DeskSettings) -> None:
    """Open a page where people upload clips and check the evidence.

    Runs until Ctrl-C or SIGTERM. Cases are stored; the next start resumes unfinished cases and does not
    repeat questions that have an answer.
    """
    if context.invoked_subcommand is not None:
        return

    def print_link(link: str) -> None:
        print_message(f"unreel desk: {link} (opens once, for another browser)")

    def announce(link: str, cases: Path, file: Path | None) -> None:
        SILENCE.stop()
        print_message(f"unreel desk: {link}", f"cases in {cases}")
        if file is not None:
            threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

    try:
        api.serve_desk(settings, on_note=print_message, on_link=print_link, on_start=announce)
    except StopSignalReceived:
        print_message("unreel desk: stopped")


@desk.command(short_help="Check every byte of a custody bundle.")
@settings_options(api.VerifySettings)
@json_option
def verify(settings: api.VerifySettings, *, as_json: bool) -> None:
    """Check every byte of the custody bundle BUNDLE, its signature and its timestamp.

    The manifest, the log, the notes and the result must agree. With --signers, the bundle must be signed by
    one of the allowed signers; with --authorities, it must have a timestamp of one of the authorities. Exits with status 0 if the bundle is intact and signed, 1 if it is not
    intact, and 3 if it is intact, but not signed.
    """
    bundle, checked = settings.bundle, api.verify_bundle(settings)
    if as_json:
        print_json(checked)
    elif checked.is_intact:
        echo(f"{bundle}: intact, {checked.n_files} files. {checked.signature} {checked.timestamp}")
        for original in checked.originals:
            n = original.n_not_chained
            note = f" (not chained: the first {n} lines of its log)" if n else ""
            echo(f"  original {original.sha256}  {original.name}{note}")
        if settings.original is not None:
            echo(f"  {settings.original} is an original of this bundle")
    else:
        print_message(*(f"{bundle}: {problem}" for problem in checked.problems))
    sys.exit(1 if not checked.is_intact else 0 if checked.is_signed else _UNSIGNED_STATUS)
