"""Photographs the contact sheet of the drawn sample: `python docs/images/draw_sheet.py`.

Needs Playwright and Debian's chromium. The pictures show synthesised clips only.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
UNREEL = [sys.executable, "-c", "from unreel.cli.main import main; main()", "curate"]
COLOURS = 192


def main() -> None:
    """Write contact-sheet.png, -phone.png and -print.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for words in ("init --sample", "run sample/curate.toml --out work", "sheet work"):
            command = [*UNREEL, *words.split()]
            subprocess.run(command, check=True, cwd=folder)  # noqa: S603  our own code
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = Path(folder, "work", "contact-sheet.html").as_uri()
        _shoot(browser, page, "contact-sheet.png", width=1280, height=None)
        _shoot(browser, page, "contact-sheet-phone.png", width=360, height=900, scheme="dark")
        _shoot(browser, page, "contact-sheet-print.png", width=794, height=1123, media="print")
        browser.close()


def _shoot(  # noqa: PLR0913  how a page is looked at
    browser: Any,
    page: str,
    name: str,
    *,
    width: int,
    height: int | None,
    scheme: str = "light",
    media: str = "screen",
) -> None:
    size = {"width": width, "height": height or 900}
    view = browser.new_page(viewport=size, color_scheme=scheme)
    view.emulate_media(media=media, color_scheme=scheme)
    view.goto(page)
    shot = view.screenshot(full_page=height is None)
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(HERE / name, optimize=True)
    view.close()


if __name__ == "__main__":
    main()
