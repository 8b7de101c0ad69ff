"""Photographs a page of `unreel train examples` over the drawn sample: `python docs/images/draw_examples.py`.

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
UNREEL = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
COLOURS = 192
SIZE = {"width": 1000, "height": 1320}
TRAINED = (
    "data.layout=video-folder",
    "data.condition.sampling=fps-4-max-20",
    "holdout={share=0,near_duplicates=false}",
)
WORDS = (
    "curate init --sample",
    "curate run sample/curate.toml --out work --set inject.share=1.0 --accept-leak",
    "train examples dtr-qwen2.5-vl-7b --data work/benchmark --out shown --n 2"
    + "".join(f" --set {change}" for change in TRAINED),
)


def main() -> None:
    """Write train-examples.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for words in WORDS:
            command = [*UNREEL, *words.split()]
            subprocess.run(command, check=True, cwd=folder)  # noqa: S603  our own code
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        view = browser.new_page(viewport=SIZE)
        view.goto(Path(folder, "shown", "examples.html").as_uri())
        picture = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(
            HERE / "train-examples.png", optimize=True
        )
        browser.close()


if __name__ == "__main__":
    main()
