"""PDF of the evidence page, printed by a locally installed Chromium."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from unreel.core.output_files import OutputDirectory

PDF = "evidence.pdf"
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
)
_SECONDS = 120.0
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network access
    "--virtual-time-budget=10000",  # time for the player to show the first onset
    "--no-pdf-header-footer",
)


def find_chromium_browser() -> str | None:
    """Return the path of a Chromium, Chrome or Edge that is installed locally; `None` without one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def lacks_browser_sandbox() -> bool:
    """Return whether Chromium cannot use its own sandbox, because it runs as root."""
    return os.geteuid() == 0


def print_page_as_pdf(page: Path, *, browser: str) -> str:
    """Print the HTML page `page` as a PDF into its folder; return the problem, "" if there is none."""
    with tempfile.TemporaryDirectory(prefix="unreel-") as temporary:
        printed = Path(temporary) / PDF
        command = [browser, *_FLAGS, f"--user-data-dir={temporary}/profile"]
        command += ["--no-sandbox"] if lacks_browser_sandbox() else []
        command += [f"--print-to-pdf={printed}", page.resolve().as_uri()]
        # The browser gets no keys of model providers.
        environment = {"PATH": os.defpath, "HOME": temporary}
        try:
            subprocess.run(  # noqa: S603  a browser of this machine, and a page that we wrote
                command,
                check=True,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"{browser} did not print it within {_SECONDS:g} s"
        except (OSError, subprocess.CalledProcessError) as error:
            return f"{browser} did not print it: {error}"
        if not printed.is_file():
            return f"{browser} did not print it"
        OutputDirectory(page.parent, published=True).write(PDF, printed.read_bytes())
        return ""
