"""Photographs the evidence page of `unreel review --sample`: `python docs/images/shoot.py`.

Needs the extra `eval`, Playwright, pypdfium2 and Debian's chromium. The pictures show a synthesised clip only.
"""

import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from draw_report import show_on_paper
from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


def main() -> None:
    """Write review.png and review-print.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
        command += ["review", "--sample", "--out", folder]
        subprocess.run(command, check=True)  # noqa: S603  our own interpreter and code
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = Path(folder, "evidence.html").as_uri()
        view = _open(browser, page)
        Image.open(io.BytesIO(view.screenshot())).convert("RGB").save(
            HERE / "review.png", optimize=True
        )
        show_on_paper(view.pdf(format="A4"), HERE / "review-print.png")
        browser.close()


def _open(browser: Any, page: str) -> Any:
    view = browser.new_page(viewport={"width": 1280, "height": 1130}, color_scheme="light")
    view.goto(page)
    _wait(view, "document.querySelector('video').readyState >= 2")
    _wait(view, "Number(document.querySelector('.player').dataset.atUs) > 2900000")
    return view


def _wait(view: Any, expression: str) -> None:
    while not view.evaluate(expression):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
