"""Draws the pictures of `unreel annotate report` over drawn clips: `PYTHONPATH=tests python docs/images/draw_campaign.py`.

Needs the extras `annotate` and `report`, Playwright and Debian's `chromium`. The people are made up.
"""

import io
import random
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from PIL import Image
from playwright.sync_api import sync_playwright

from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    AnnotatorClipCopy,
    Campaign,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
    TraceAnswer,
)
from unreel.annotation.campaign_page import CampaignPageSettings, write_campaign_page
from unreel.annotation.campaign_state import CampaignRecords
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.publishing.publishable_campaign import (
    build_annotator_scoring_input,
    build_publishable_campaign,
    score_annotators,
)
from unreel.benchmarks.entry import Entry
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.content_ids import compute_bytes_clip_id
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Trace

HERE: Final = Path(__file__).parent
COLOURS: Final = 256
SKILLS: Final = {"ada": 0.01, "ben": 0.03, "cleo": 0.07, "dora": 0.03}
N_CLIPS: Final = 14
SHIFTS: Final = {"cleo": 0.22, "ben": -0.06}
"""How far two of them are off in the clip that people disagree about most."""


def main() -> None:
    """Write annotate-report.png, -dark.png and -phone.png."""
    with TemporaryDirectory() as folder:
        page = make_page(Path(folder))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            shoot(browser, page, "annotate-report.png", size=(1280, 1150), scheme="light")
            shoot(browser, page, "annotate-report-dark.png", size=(1280, 1150), scheme="dark")
            shoot(browser, page, "annotate-report-phone.png", size=(360, 740), scheme="dark")
            browser.close()


def make_page(folder: Path) -> Path:
    """The page of a campaign of four people over drawn clips."""
    media = folder / "media"
    media.mkdir()
    recipes = [draw(number) for number in range(N_CLIPS)]
    tasks = [make_task(media, recipe) for recipe in recipes]
    campaign = Campaign(
        name="streets-and-rooms",
        interface=AnnotationInterface.TRACE,
        benchmark="drawn",
        guidelines="Mark each fault once.",
        interface_version="v1",
    )
    asked = [(task, who) for place, task in enumerate(tasks) for who in asked_of(place)]
    records = CampaignRecords(
        campaign=campaign,
        tasks={task.id: task for task in tasks},
        assignments={
            (who, task.id): TaskAssignment(annotator=who, task=task.id, batch=1, position=place)
            for place, (task, who) in enumerate(asked)
        },
        current={
            (who, task.id): record(task, who, recipes[tasks.index(task)]) for task, who in asked
        },
        quarantined=(),
        excluded={},
        n_records=len(asked),
    )
    broken = [r for r in records.current.values() if isinstance(r.outcome, SubmissionQuarantine)]
    records = replace(records, quarantined=tuple(broken))
    edition = build_publishable_campaign(records, ConsensusRule())
    entries = {
        task.names[0]: Entry(
            name=task.names[0],
            location="",
            origin=Generated("Aurora 2") if recipe.flawed else Real(),
        )
        for task, recipe in zip(tasks, recipes, strict=True)
    }
    links = dict.fromkeys(records.current, "http://127.0.0.1:8080/projects/1/data?task=1")
    wish = CampaignPageSettings(
        media=media,
        links=links,
        people=score_annotators(build_annotator_scoring_input(edition, entries, seed=0)),
    )
    return write_campaign_page(edition, records, folder / "out", wish).page


def draw(number: int) -> ClipRecipe:
    """A clip of the set; two of three have a fault."""
    return ClipRecipe(
        scene="room" if number % 2 else "street",
        flawed=number % 3 != 0,
        width=640,
        height=360,
        n_frames=84,
        seed=number,
    )


def asked_of(place: int) -> list[str]:
    """Three of the four, in turn."""
    names = list(SKILLS)
    return sorted(names[: place % 4] + names[place % 4 + 1 :])


def make_task(media: Path, recipe: ClipRecipe) -> AnnotationTask:
    """The clip, written down, as a task."""
    clip = synthesise(recipe)
    name = f"{recipe.scene}-{recipe.seed:03d}"
    (media / f"{name}.mp4").write_bytes(clip)
    copy = AnnotatorClipCopy(
        clip=compute_bytes_clip_id(clip),
        location=f"{name}.mp4",
        rate=recipe.rate,
        n_frames=recipe.n_frames,
        width=recipe.width,
        height=recipe.height,
    )
    return AnnotationTask(names=(name,), copies=(copy,))


def record(task: AnnotationTask, who: str, recipe: ClipRecipe) -> AnnotationRecord:
    """What that person says of the clip."""
    dice = random.Random(f"{who} {task.names[0]}")  # noqa: S311  no secret
    outcome: TraceAnswer | SubmissionQuarantine = TraceAnswer(traces=(), label=Label.REAL)
    if recipe.flawed:
        by = dice.gauss(0, SKILLS[who])
        if recipe.seed == 1:
            by = SHIFTS.get(who, 0.0)
        outcome = TraceAnswer(traces=(beside(planted_trace(recipe), by),), label=Label.GENERATED)
    if recipe.seed == 4 and who == "ben":
        outcome = SubmissionQuarantine(QuarantineReason.OUT_OF_RANGE, "frame 99 of 84")
    return AnnotationRecord(
        campaign="streets-and-rooms",
        annotator=who,
        task=task.id,
        origin=f"{who} {task.id}",
        guidelines_version="g1",
        interface_version="v1",
        submitted_us=1_700_000_000_000_000,
        lead_us=round(dice.lognormvariate(3.6, 0.4) * 1_000_000),
        raw="{}",
        outcome=outcome,
    )


def beside(trace: Trace, by: float) -> Trace:
    """The same fault with boxes that lie a little beside it."""
    track = []
    for mark in trace.track:
        step = max(-mark.box.x0, min(by, 1 - mark.box.x1))
        track.append(
            BoxAt(mark.at_us, Box(mark.box.x0 + step, mark.box.y0, mark.box.x1 + step, mark.box.y1))
        )
    return replace(trace, track=tuple(track))


def shoot(browser: Any, page: Path, name: str, *, size: tuple[int, int], scheme: str) -> None:
    """One picture, in few colours."""
    view = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    view.goto(page.as_uri())
    view.locator("#task-0 .player-trace.c0").first.click()
    view.wait_for_timeout(1500)
    if size[0] < 400:
        view.evaluate("document.querySelector('#task-0').scrollIntoView()")
    else:
        view.evaluate("window.scrollTo(0, 0)")
    picture = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        HERE / name, optimize=True
    )
    view.close()


if __name__ == "__main__":
    main()
