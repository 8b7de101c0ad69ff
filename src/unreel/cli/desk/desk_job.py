"""Implementation of `unreel desk`: run the web application in this process, and print its link."""

import threading
import webbrowser
from pathlib import Path

from unreel.api.contacts import describe_model_servers
from unreel.cli.output import SILENCE, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.core.managed_server import require_free_port
from unreel.core.settings import read_environment_settings
from unreel.desk.app import create_desk_app
from unreel.desk.reviewer_sets import add_local_reviewer_sets
from unreel.desk.settings import read_desk_settings, require_sign_in_proxy
from unreel.media.access import require_sandbox_protection
from unreel.webapp.server import run_app

_OPEN = "open.html"
"""File in the folder of cases that only this user can read, and that opens the first link."""
_STOP_S = 2
"""Seconds for running requests after a stop signal, because the progress streams of pages do not end."""


def serve_desk_application(
    config: Path | None,
    *,
    cases: Path | None,
    host: str,
    port: int,
    opens_browser: bool,
    trusted: bool,
) -> None:
    """Serve the desk until a stop signal; print each one-time link, and open the first in a browser."""
    settings = read_desk_settings(config, cases)
    if config is None:
        settings = add_local_reviewer_sets(settings)
    require_sign_in_proxy(settings, host)
    environment = read_environment_settings()
    require_sandbox_protection(environment, trusted=trusted)
    if port:
        require_free_port(host, port)
    models = dict.fromkeys(model for each in settings.reviewers for model in each.models)
    print_message(*describe_model_servers([*models], environment))
    addresses: list[str] = []

    def print_link(path: str) -> None:
        app.state.desk.store.root.remove(_OPEN)
        print_message(f"unreel desk: {addresses[0]}{path} (opens once, for another browser)")

    app = create_desk_app(settings, environment=environment, trusted=trusted, on_link=print_link)

    def announce(address: str) -> None:
        SILENCE.stop()
        addresses.append(address)
        link = address + app.state.desk.access.link
        print_message(f"unreel desk: {link}", f"cases in {settings.cases}")
        if opens_browser and settings.proxy is None:
            # Everyone on this machine can read the command line of the browser.
            page = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">'
            file = app.state.desk.store.root.write(_OPEN, page.encode())
            threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

    try:
        run_app(app, host=host, port=port, on_start=announce, stop_s=_STOP_S)
    except StopSignalReceived:
        print_message("unreel desk: stopped")
    finally:
        app.state.desk.store.root.remove(_OPEN)
        app.state.desk.close()
