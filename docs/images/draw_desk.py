"""Photographs the desk with synthesised clips: `python docs/images/draw_desk.py`.

Needs the extra `desk`, Playwright and Debian's chromium. The answers are recorded; the pages say so.
"""

import hashlib
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from desk.desk_process import running  # noqa: E402
from synthesise import ClipRecipe, synthesise  # noqa: E402

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FAKE = (
    "FAKE<coordinates>[308, 272, 384, 346]</coordinates><start_time>2.0</start_time>"
    "<explanation>The front wheel comes off and floats.</explanation>"
)
COLOURS = 128


def main() -> None:
    """Write desk.png and desk-phone.png."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        clips = _write_clips(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with running(folder) as (_process, link):
            context = browser.new_context(viewport={"width": 1280, "height": 1480})
            page = context.new_page()
            page.goto(link)
            page.set_input_files("#clips", clips)
            page.get_by_role("button", name="Check").click()
            page.wait_for_url("**/batches/**")
            while "3 of 3" not in page.locator("h1").inner_text():
                page.wait_for_timeout(500)
                page.reload()
            page.get_by_role("link", name="street.mp4").click()
            case = page.url
            page.goto(case.partition("/cases")[0])
            page.wait_for_timeout(500)
            _save(page, "desk.png")
            phone = browser.new_context(
                viewport={"width": 390, "height": 1400},
                color_scheme="dark",
                storage_state=context.storage_state(),
            ).new_page()
            phone.goto(case)
            phone.wait_for_timeout(1500)
            _save(phone, "desk-phone.png")
        browser.close()


def _write_clips(folder: Path) -> list[str]:
    street = ClipRecipe(
        scene="street", flawed=True, width=640, height=360, n_frames=72, gop=24, seed=4
    )
    room = ClipRecipe(scene="room", width=640, height=360, n_frames=48, gop=24, seed=5)
    data = {"street.mp4": synthesise(street), "room.mp4": synthesise(room)}
    data["damaged.mp4"] = data["room.mp4"][:900]
    texts = {"street.mp4": (FAKE, "<answer>2</answer>"), "room.mp4": ("REAL", "<answer>5</answer>")}
    rows = [
        {"name": hashlib.sha256(data[name]).hexdigest(), "protocol": protocol, "text": text}
        for name, answers in texts.items()
        for protocol, text in zip(("trace", "realism"), answers, strict=True)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "desk.toml").write_text(
        "retain_days = 30\n[[reviewers]]\nname = 'Recorded answers and a fixed rule'\n"
        "models = ['recorded', 'always-real']\nrecorded = 'answers.jsonl'\n"
        "[[reviewers]]\nname = 'No model: findings in the file only'\n"
    )
    for name, content in data.items():
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in data]


def _save(page: Any, name: str) -> None:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(HERE / name, optimize=True)


if __name__ == "__main__":
    main()
