"""Photographs the six screens of `unreel annotate` over synthesised clips: `PYTHONPATH=tests python docs/images/draw_annotate.py`.

Needs the extra `annotate`, Playwright, Debian's chromium and Label Studio in an environment of its own
(`label-studio` on the path). Every screen is filled in as a person would and sent; what Label Studio counts as
the time on each task is printed. It is a script's time: how long the screen itself takes, no thinking.
"""

import io
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import sync_playwright

from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.interfaces.label_studio_tasks import get_annotation_screen
from unreel.annotation.studio.client import (
    CLIPS,
    LEAD,
    LabelStudioClient,
    LabelStudioConnection,
    LabelStudioServerSettings,
    find_label_studio_program,
    load_studio_secrets,
    start_label_studio,
)
from unreel.media.render import NormalisedClipFormat, normalise_clip

HERE: Final = Path(__file__).parent
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
COLOURS: Final = 256
PATIENCE_MS: Final = 120_000
QUESTION: Final = "Does every object keep its shape?"
RECIPE: Final = ClipRecipe(scene="room", flawed=True, width=640, height=360, n_frames=96)
SOUND: Final = ClipRecipe(scene="room", width=640, height=360, n_frames=96)
AT_S: Final = 3.0
"""Where the trace is marked."""
WORDS: Final = {
    AnnotationInterface.SCREENING: "1",
    AnnotationInterface.REALITY: "2",
    AnnotationInterface.PASS_FAIL: "2",
    AnnotationInterface.PREFERENCE: "1",
}


@dataclass(frozen=True)
class Login:
    """Who looks at the screens."""

    email: str
    password: str


def main() -> None:
    """Start Label Studio, write the six pictures and print the times."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        plan = LabelStudioServerSettings(
            program=find_label_studio_program(None), folder=Path(folder), port=port
        )
        with start_label_studio(plan, on_output=_tell):
            secrets = load_studio_secrets(plan.folder)
            own = LabelStudioConnection(
                address=plan.address, token=secrets.token, media=plan.folder / CLIPS
            )
            draw(own, plan.folder / CLIPS, Login(LEAD, secrets.password))


def _tell(said: str) -> None:
    sys.stderr.write(f"{said}\n")


def draw(connection: LabelStudioConnection, media: Path, login: Login) -> None:
    """Photograph every screen of a running server."""
    for name, recipe in (("flawed.mp4", RECIPE), ("sound.mp4", SOUND)):
        form = NormalisedClipFormat(width=recipe.width, height=recipe.height, rate=recipe.rate)
        made = normalise_clip(io.BytesIO(synthesise(recipe)), form)
        (media / name).write_bytes(made)
    with LabelStudioClient(connection) as client, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{connection.address}/user/login/")
        page.fill("input[name=email]", login.email)
        page.fill("input[name=password]", login.password)
        page.click("button[type=submit]")
        page.wait_for_load_state("networkidle")
        for interface in AnnotationInterface:
            project = _open_project(client, interface, media)
            page.goto(f"{connection.address}/projects/{project}/data?labeling=1")
            _fill(page, interface)
            _shoot(page, HERE / f"annotate-{interface.value}.png")
            sys.stdout.write(f"{interface.value}: {_send(page, client, project):.1f} s\n")
        browser.close()


def _open_project(client: LabelStudioClient, interface: AnnotationInterface, media: Path) -> int:
    question = QUESTION if interface is AnnotationInterface.PASS_FAIL else ""
    screen = get_annotation_screen(interface, question=question)
    settings = {"title": f"{interface.value}, batch 1", "label_config": screen.config}
    settings |= {"expert_instruction": screen.guidelines, "show_skip_button": False}
    project = int(client.post("/api/projects/", settings)["id"])
    store = {"project": project, "path": str(media), "title": "copies"}
    client.post("/api/storages/localfiles", store)
    flawed, sound = (
        f"/data/local-files/?d={media.name}/{name}" for name in ("flawed.mp4", "sound.mp4")
    )
    data = {"video": flawed, "left": sound, "right": flawed}
    rates = dict.fromkeys(("fps", "fps_left", "fps_right"), "24")
    client.post(f"/api/projects/{project}/import", [{"data": data | rates}])
    return project


def _fill(page: Any, interface: AnnotationInterface) -> None:
    """Watch the clips to their ends and answer."""
    page.wait_for_function("[...document.querySelectorAll('video')].some(v => v.readyState >= 2)")
    page.wait_for_timeout(1500)
    for number in range(interface.n_clips):
        page.locator("[data-testid='playback-button:play']").nth(number).click()
        page.wait_for_function(f"document.querySelectorAll('video')[{number}].currentTime > 3.9")
        page.wait_for_timeout(500)
    page.mouse.move(0, 0)
    if interface is AnnotationInterface.TRACE:
        _mark_trace(page)
    elif interface is AnnotationInterface.REALISM:
        page.keyboard.press("2")
        _write(page, "problem", "A second ball comes out of the first and rises by itself.")
        _write(page, "adherence", "A significant error in more than 20% of the visual composition.")
        page.keyboard.press("o")
    else:
        page.keyboard.press(WORDS[interface])
    page.wait_for_timeout(500)


def _mark_trace(page: Any) -> None:
    frame = int(AT_S * float(RECIPE.rate)) + 1
    page.get_by_text("of 96").first.click()
    for _ in range(3):
        page.keyboard.press("Backspace")
    page.keyboard.type(str(frame))
    page.keyboard.press("Enter")
    page.wait_for_timeout(800)
    trace = planted_trace(RECIPE)
    box = min(trace.track if trace else (), key=lambda mark: abs(mark.at_us - AT_S * 1e6)).box
    stage = page.locator("canvas").first.bounding_box()
    left = stage["x"] + (stage["width"] - RECIPE.width) / 2
    top = stage["y"] + (stage["height"] - RECIPE.height) / 2
    corners = [(box.x0, box.y0), ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2), (box.x1, box.y1)]
    points = [(left + x * RECIPE.width, top + y * RECIPE.height) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=4)
    page.mouse.move(*points[2], steps=4)
    page.mouse.up()
    page.wait_for_timeout(1000)
    page.mouse.click(*points[1], delay=50)
    page.locator("textarea[name=explanation]").wait_for(state="visible")
    page.mouse.move(0, 0)
    page.keyboard.press("r")
    _write(page, "explanation", "A second ball comes out of the first and rises by itself.")
    page.keyboard.press("1")


def _write(page: Any, field: str, text: str) -> None:
    page.locator(f"textarea[name={field}]").fill(text)
    page.evaluate("document.activeElement.blur()")


def _shoot(page: Any, path: Path) -> None:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def _send(page: Any, client: LabelStudioClient, project: int) -> float:
    """Submit, and give the seconds that Label Studio counted."""
    with page.expect_response(
        lambda one: one.request.method == "POST" and "/annotations" in one.request.url
    ):
        page.click("button[aria-label='Submit current annotation']")
    (task,) = client.get("/api/tasks", project=project, fields="all")["tasks"]
    return float(task["annotations"][0]["lead_time"])


if __name__ == "__main__":
    main()
