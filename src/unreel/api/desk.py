"""The desk: a web application in which people check clips, and its custody bundles."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unreel.api.shared_settings import TrustSettings
from unreel.core.command_options import FOLDER, NEW_FILE, Option
from unreel.core.registry import require_extra
from unreel.core.settings import read_environment_settings

if TYPE_CHECKING:
    from unreel.desk.custody_bundle import CustodyBundleCheck

_OPEN = "open.html"
"""File in the folder of cases that only this user can read, and that opens the first link."""
_STOP_S = 2
"""Seconds for running requests after a stop signal, because the progress streams of pages do not end."""


@dataclass(frozen=True, kw_only=True)
class DeskSettings(TrustSettings):
    """Settings of `serve_desk`."""

    config: Annotated[Path | None, NEW_FILE] = None
    """TOML file with the settings of the desk, such as its models. Without it, the page offers the models on this computer, and no other model is queried."""
    cases: Annotated[Path | None, FOLDER] = None
    """Folder of the stored cases.  [default: desk-cases]"""
    host: str = "127.0.0.1"
    """Network address on which the server listens. Addresses other than loopback require [proxy] in the file of --config."""
    port: Annotated[int, Option(low=0, high=65535)] = 8070
    """TCP port of the server. With 0, the system chooses a free port, and the command prints it."""
    no_browser: bool = False
    """Print the link without opening a browser."""


def serve_desk(
    settings: DeskSettings,
    *,
    on_note: Callable[[str], None],
    on_link: Callable[[str], None],
    on_start: Callable[[str, Path, Path | None], None],
) -> None:
    """Serve the desk until a stop signal.

    Args:
        settings: Settings of the server.
        on_note: Receives one line for each model server before the start.
        on_link: Receives each later one-time link.
        on_start: Receives the first link, the folder of cases, and the file that opens the link in a
            browser; `None` if no browser is to be opened.
    """
    require_extra(("fastapi", "uvicorn", "lance"), "desk")
    from unreel.api.contacts import describe_model_servers
    from unreel.core.managed_server import require_free_port
    from unreel.desk.app import create_desk_app
    from unreel.desk.reviewer_sets import add_local_reviewer_sets
    from unreel.desk.settings import read_desk_settings, require_sign_in_proxy
    from unreel.media.access import require_sandbox_protection
    from unreel.webapp.server import run_app

    desk = read_desk_settings(settings.config, settings.cases)
    if settings.config is None:
        desk = add_local_reviewer_sets(desk)
    require_sign_in_proxy(desk, settings.host)
    environment = read_environment_settings()
    require_sandbox_protection(environment, trusted=settings.trusted)
    if settings.port:
        require_free_port(settings.host, settings.port)
    models = dict.fromkeys(model for reviewers in desk.reviewers for model in reviewers.models)
    for line in describe_model_servers([*models], environment):
        on_note(line)
    addresses: list[str] = []

    def report_link(path: str) -> None:
        app.state.desk.store.root.remove(_OPEN)
        on_link(addresses[0] + path)

    app = create_desk_app(
        desk, environment=environment, trusted=settings.trusted, on_link=report_link
    )

    def announce(address: str) -> None:
        addresses.append(address)
        link = address + app.state.desk.access.link
        file = None
        if not settings.no_browser and desk.proxy is None:
            # Everyone on this machine can read the command line of the browser.
            page = f'<!doctype html><meta http-equiv="refresh" content="0; url={link}">'
            file = app.state.desk.store.root.write(_OPEN, page.encode())
        on_start(link, desk.cases, file)

    try:
        run_app(app, host=settings.host, port=settings.port, on_start=announce, stop_s=_STOP_S)
    finally:
        app.state.desk.store.root.remove(_OPEN)
        app.state.desk.close()


@dataclass(frozen=True, kw_only=True)
class VerifySettings:
    """Settings of `verify_bundle`."""

    bundle: Annotated[Path, Option(is_argument=True, kind="new file")]
    signers: Annotated[Path | None, NEW_FILE] = None
    """File with the public keys of the allowed signers, in the format of ssh-keygen."""
    authorities: Annotated[Path | None, NEW_FILE] = None
    """PEM file with the certificates of the accepted timestamp authorities."""
    original: Annotated[Path | None, NEW_FILE] = None
    """Video file that must be the original of a case in the bundle."""


def verify_bundle(settings: VerifySettings) -> "CustodyBundleCheck":
    """Check every byte of a custody bundle, its signature and its timestamp."""
    from unreel.desk.custody_bundle import verify_custody_bundle

    return verify_custody_bundle(
        settings.bundle,
        settings.signers,
        original=settings.original,
        authorities=settings.authorities,
    )
