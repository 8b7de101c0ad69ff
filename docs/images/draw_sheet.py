"""Photographs the contact sheet of the drawn sample: `python docs/images/draw_sheet.py`.

Needs Playwright and Debian's chromium. The pictures show synthesised clips only.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
UNREEL = [sys.executable, "-c", "from unreel.cli.main import main; main()", "curate"]
COLOURS = 192


def main() -> None:
    """Write contact-sheet.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for words in ("init --sample", "run sample/curate.toml --out work", "sheet work"):
            command = [*UNREEL, *words.split()]
            subprocess.run(command, check=True, cwd=folder)  # noqa: S603  our own code
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = Path(folder, "work", "contact-sheet.html").as_uri()
        view = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        view.goto(page)
        picture = Image.open(io.BytesIO(view.screenshot(full_page=True))).convert("RGB")
        browser.close()
    colours = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    colours.save(HERE / "contact-sheet.png", optimize=True)


if __name__ == "__main__":
    main()
