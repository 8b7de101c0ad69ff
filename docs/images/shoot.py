"""Photographs the evidence page of `unreel review --sample`: `python docs/images/shoot.py`.

Needs the extra `report`, Playwright, pypdfium2 and Debian's chromium. The pictures show a synthesised clip only.
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
COLOURS = 256


def main() -> None:
    """Write review.png, review-dark.png, review-phone.png and review-print.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
        command += ["review", "--sample", "--out", folder]
        subprocess.run(command, check=True)  # noqa: S603  our own interpreter and code
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = Path(folder, "evidence.html").as_uri()
        _shoot(browser, page, "review.png", size=(1280, 1130), scheme="light")
        _shoot(browser, page, "review-dark.png", size=(1280, 1130), scheme="dark")
        _shoot(browser, page, "review-phone.png", size=(360, 740), scheme="dark")
        view = _open(browser, page, size=(1280, 1130), scheme="dark")
        show_on_paper(view.pdf(format="A4"), HERE / "review-print.png")
        browser.close()


def _open(browser: Any, page: str, *, size: tuple[int, int], scheme: str) -> Any:
    view = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    view.goto(page)
    _wait(view, "document.querySelector('video').readyState >= 2")
    _wait(view, "Number(document.querySelector('.player').dataset.atUs) > 2900000")
    return view


def _shoot(browser: Any, page: str, name: str, *, size: tuple[int, int], scheme: str) -> None:
    view = _open(browser, page, size=size, scheme=scheme)
    picture = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        HERE / name, optimize=True
    )
    view.close()


def _wait(view: Any, expression: str) -> None:
    while not view.evaluate(expression):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
