"""Draws the pictures of `unreel report` over synthesised clips: `PYTHONPATH=tests python docs/images/draw_report.py`.

Needs the extra `eval`, Playwright, pypdfium2 and Debian's `chromium`. The reviewers are made up: their answers
are recorded ones, of three degrees of skill, so that there is something to see.
"""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import astuple
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.settings import read_environment_settings
from unreel.core.trace import Trace
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.explanation_scores import ExplanationJudges, open_run_rulings
from unreel.evaluation.judge import judge_explanations
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.scoring import score_run
from unreel.report.site import write_report
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.endpoint.reviewer import ModelIOFormat, format_endpoint_model_name
from unreel.reviewers.factory import wrap_open_reviewer

HERE: Final = Path(__file__).parent
WIDTH, HEIGHT, FRAMES = 480, 270, 84
TOP: Final[Any] = {"x": 0.0, "y": 215.0, "width": 1280.0, "height": 1000.0}
"""The part of the page with the leaderboard."""
CREATORS: Final = ("Aurora 2", "Lumen XL", "Reverie", "Tapestry")
JUDGE: Final = "compatible/judge@http://127.0.0.1:9/v1"
SKILLS: Final = {"northlight-72b": 0.92, "harbour-vl-8b": 0.72, "kestrel-2b": 0.5}
EXCUSE: Final = "The light looks unnatural."


def make_benchmark(root: Path, *, n_clips: int = 33) -> dict[str, Trace | None]:
    """A video folder of real and generated clips, and the fault of each."""
    faults: dict[str, Trace | None] = {}
    lines = []
    for number in range(n_clips):
        flawed = number % 3 != 0
        recipe = ClipRecipe(
            scene="room" if number % 2 else "street",
            flawed=flawed,
            width=WIDTH,
            height=HEIGHT,
            n_frames=FRAMES,
            seed=number,
        )
        name = f"{recipe.scene}-{number:03d}"
        (root / f"{name}.mp4").write_bytes(synthesise(recipe))
        faults[name] = planted_trace(recipe) if flawed else None
        creator = CREATORS[number * 7 % 11 % len(CREATORS)]
        origin = Generated(creator) if flawed else Real()
        fault = faults[name]
        entry = Entry(
            name=name, location="", origin=origin, traces=() if fault is None else (fault,)
        )
        lines.append(json.dumps(convert_entry_to_record(entry, file_name=f"{name}.mp4")))
    (root / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return faults


def record_answers(path: Path, faults: dict[str, Trace | None], *, skill: float) -> None:
    """What a reviewer of that skill might have said, as the model `recorded` replays it."""
    dice = random.Random(path.stem)  # noqa: S311  no secret
    lines = []
    for name, fault in faults.items():
        line: dict[str, Any] = {
            "clip": f"{name}.mp4",
            "latency_us": dice.randrange(600_000, 4_000_000),
        }
        line |= {
            "input_tokens": dice.randrange(1800, 2400),
            "output_tokens": dice.randrange(30, 120),
        }
        fate = dice.random()
        if fate > 0.97:
            line = {"clip": line["clip"], "failure": "rate-limited", "detail": "429 after 3 tries"}
        elif fate > 0.94:
            line["text"] = "I am not able to tell from these frames whether it is real or fake."
        else:
            line["text"] = "REAL" if says_real(fault, skill, dice) else accuse(fault, skill, dice)
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines), encoding="utf-8")


def says_real(fault: Trace | None, skill: float, dice: random.Random) -> bool:
    """Right as often as skill allows."""
    return (fault is None) == (dice.random() < skill)


def accuse(fault: Trace | None, skill: float, dice: random.Random) -> str:
    """An accusation in the form that was asked for, near the fault or anywhere."""
    spread = 0.25 * (1 - skill) + 0.01
    box = fault.track[0].box if fault else Box(0.2, 0.2, 0.5, 0.7)
    edges = [min(1.0, max(0.0, edge + dice.gauss(0, spread))) for edge in astuple(box)]
    corners = [round(edge * (WIDTH, HEIGHT)[i % 2]) for i, edge in enumerate(edges)]
    if dice.random() > skill + 0.1:
        corners = [0, 0, WIDTH, HEIGHT]
    start = fault.span.start_us / 1e6 if fault else 0.4
    start = max(0.0, start + dice.gauss(0, 1.2 * (1 - skill) + 0.05))
    reason = fault.explanation if fault and dice.random() < skill else EXCUSE
    return (
        f"FAKE <coordinates>{corners}</coordinates> <start_time>{start:.2f}</start_time> "
        f"<explanation>{reason}</explanation>"
    )


class Judge:
    """Gives 0 to the excuse that fits everything, and 1 else."""

    name = format_endpoint_model_name(JUDGE, ModelIOFormat())
    wants: frozenset[InputKind] = frozenset()

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply:
        return Reply(text="0" if EXCUSE in request.prompt else "1")

    async def close(self) -> None:
        """Nothing to close."""


def make_runs(root: Path) -> Iterator[EvalRun]:
    """Runs of three recorded reviewers and two floors."""
    bench = root / "streets and rooms"
    bench.mkdir()
    faults = make_benchmark(bench)
    for name, skill in SKILLS.items():
        record_answers(root / f"{name}.jsonl", faults, skill=skill)
        yield start(root, bench, name=name, model="recorded", recorded=str(root / f"{name}.jsonl"))
    for floor in ("coin", "always-generated"):
        yield start(root, bench, name=floor, model=floor)


def start(root: Path, bench: Path, *, name: str, **settings: Any) -> EvalRun:
    """One run, asked and judged."""
    folder = root / f"run-{name}"
    recipe = validate_eval_recipe({"benchmark": str(bench), "protocol": "trace", **settings})
    access = ClipAccessSettings(settings=read_environment_settings())
    run = EvalRun(place=StorageLocation(str(folder)), recipe=recipe, access=access, ledgers=folder)
    evaluate(run)
    judge = partial(
        judge_explanations, factory=wrap_open_reviewer(Judge()), store=open_run_rulings(run)
    )
    score_run(run, score_texts=ExplanationJudges([judge], 0))
    return run


def photograph(page: Path) -> None:
    """Take the pictures: of the first page, of a clip, of one reviewer, and on paper."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        sheet = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme="light")
        sheet.goto(page.as_uri())
        sheet.locator("[data-drawn]").first.wait_for()
        sheet.screenshot(path=HERE / "report-light.png", clip=TOP, full_page=True)
        sheet.goto(f"{page.as_uri()}#clip={first_clip(sheet)}")
        sheet.locator(".player-trace.c0").first.click()
        sheet.wait_for_timeout(1500)
        sheet.evaluate("document.querySelector('#found').scrollIntoView()")
        sheet.screenshot(path=HERE / "report-clip-light.png")
        sheet.set_viewport_size({"width": 1280, "height": 700})
        sheet.goto((page.parent / "reviewers" / "1.html").as_uri())
        sheet.screenshot(path=HERE / "report-reviewer.png")
        sheet.emulate_media(color_scheme="dark")  # paper is light all the same
        sheet.goto(page.as_uri())
        show_on_paper(sheet.pdf(format="A4"), HERE / "report-print.png")
        browser.close()


def show_on_paper(pdf: bytes, picture: Path, *, n_sheets: int = 3) -> None:
    """The first sheets side by side."""
    import pypdfium2
    from PIL import Image

    paper = pypdfium2.PdfDocument(pdf)
    sheets = [paper[i].render(scale=1.0).to_pil().convert("RGB") for i in range(n_sheets)]
    width, height = sheets[0].size
    whole = Image.new("RGB", ((width + 12) * n_sheets, height), "#d9dde4")
    for place, sheet in enumerate(sheets):
        whole.paste(sheet, (place * (width + 12), 0))
    whole.save(picture, optimize=True)


def first_clip(sheet: Any) -> str:
    """The first generated clip of the page."""
    return str(
        sheet.evaluate(
            "JSON.parse(document.getElementById('report-index').textContent)"
            ".clips.find((clip) => clip[2] !== -1)[0]"
        )
    )


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        photograph(
            write_report(list(make_runs(folder)), folder / "report", judge=JUDGE).page.resolve()
        )
