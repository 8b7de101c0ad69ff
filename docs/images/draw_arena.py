"""Draws the pictures of `unreel arena site`: `python docs/images/draw_arena.py`.

Needs the extra `eval`, Playwright and Debian's `chromium`. Creators and reviewers are made up, and so are their answers.
"""

import io
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from PIL import Image

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SILENT,
    SeasonAnswerTable,
    SeasonClips,
)
from unreel.arena.boards.ablations import measure_ablation_effects, measure_reviewer_biases
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.report.season.page_data import SeasonPageData, get_entrant_page_name
from unreel.report.season.site import write_season_site

HERE: Final = Path(__file__).parent
COLOURS: Final = 256
CREATORS: Final = {
    "Aurora 2/image+text": -0.8,
    "Aurora 2/text": -1.1,
    "Lumen XL/text": -0.1,
    "Reverie/image+text": 0.7,
    "Tapestry/image": 1.3,
}
"""With how real their clips look."""
CONTROLS: Final = ("recompressed", "retimed")
REVIEWERS: Final = {
    "northlight-72b": 1.6,
    "harbour-vl-8b": 1.1,
    "kestrel-2b": 0.6,
    "trace-cnn": 1.2,
    "coin": 0.0,
    "metadata": 0.1,
    "motion": 0.3,
}
"""With how well they see."""
FLOORS: Final = frozenset({"coin", "metadata", "motion"})
REASONS: Final = (
    "The hands keep their shape.",
    "Light and shadow agree.",
    "The water runs uphill.",
)


def make_lineup(n_scenes: int) -> SeasonClips:
    """Of each scene the real clip, one by each creator, and each control."""
    creators = tuple(CREATORS)
    makers = [("real", NOBODY, NOBODY)]
    makers += [(name, number, NOBODY) for number, name in enumerate(creators)]
    makers += [(name, NOBODY, number) for number, name in enumerate(CONTROLS)]
    rows = [(scene, *maker) for scene in range(n_scenes) for maker in makers]
    return SeasonClips(
        names=tuple(f"{name}/street-{scene:02}" for scene, name, _, _ in rows),
        creators=creators,
        scenes=tuple(f"street-{scene:02}" for scene in range(n_scenes)),
        creator=np.array([creator for _, _, creator, _ in rows], dtype=np.int32),
        scene=np.array([scene for scene, *_ in rows], dtype=np.int32),
        control=np.array([control for *_, control in rows], dtype=np.int32),
        controls=CONTROLS,
        nuisance=np.empty((len(rows), 0)),
    )


def make_play(
    lineup: SeasonClips, condition: str, *, seed: int, better: float = 0.0
) -> SeasonAnswerTable:
    """Everyone about everything; `better` is what the condition helps those who see."""
    draw = np.random.default_rng(seed)
    names = tuple(sorted(REVIEWERS))
    sees = np.array([REVIEWERS[name] + (better if name not in FLOORS else 0.0) for name in names])
    looks = np.array([*CREATORS.values(), 0.0])[lineup.creator]
    made = lineup.creator != NOBODY
    pull = np.where(made, 1.3 - looks, -1.6)
    says = draw.random((len(names), len(made))) < 1 / (1 + np.exp(-sees[:, None] * pull))
    said = np.where(says, ANSWERED_GENERATED, ANSWERED_REAL)
    said[draw.random(said.shape) < 0.02] = SILENT
    reviewer, clip = np.indices(said.shape)
    return SeasonAnswerTable(
        clips=lineup,
        condition=condition,
        reviewers=names,
        floors=FLOORS,
        reviewer=reviewer.ravel().astype(np.int32),
        clip=clip.ravel().astype(np.int32),
        answer_codes=said.ravel().astype(np.int8),
    )


def make_season(name: str, *, n_scenes: int, seed: int) -> SeasonPageData:
    """A season under two conditions."""
    lineup = make_lineup(n_scenes)
    plays = (
        make_play(lineup, "8 frames", seed=seed),
        make_play(lineup, "8 frames, audio on", seed=seed + 1, better=0.4),
    )
    words = {
        (play.condition, reviewer, clip): REASONS[number % len(REASONS)]
        for play in plays
        for reviewer in play.reviewers
        if reviewer not in FLOORS
        for number, clip in enumerate(lineup.names)
    }
    return SeasonPageData(
        name=name,
        facts=(("Benchmark", "streets"), ("Protocol", "reality"), ("Seed", "0")),
        answer_tables=plays,
        leaderboards=tuple(rank_season_entrants(play, seed=0, resamples=1000) for play in plays),
        words=words,
        ablations=measure_ablation_effects(plays),
        leanings=measure_reviewer_biases(plays[0]),
    )


def photograph(page: Path) -> None:
    """Take the pictures: the boards in light, the matrix in dark and on a phone, and one reviewer."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, scheme, size, place in (
            ("arena-light", "light", (1280, 1300), ""),
            ("arena-dark", "dark", (1280, 790), "#c0-matrix"),
            ("arena-phone", "dark", (360, 740), "#c0-matrix"),
        ):
            sheet = browser.new_page(
                viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
            )
            shoot(sheet, page.as_uri(), place, name)
        sheet = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        own = (
            page.parent / "entrants" / f"{get_entrant_page_name('reviewer', 'northlight-72b')}.html"
        )
        shoot(sheet, own.as_uri(), "", "arena-reviewer")
        browser.close()


def shoot(sheet: Any, url: str, place: str, name: str) -> None:
    """One picture, with few colours; without a place, of the top of the page."""
    sheet.goto(url)
    for chart in sheet.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg").wait_for()
    top = "window.scrollTo(0, 0)"
    sheet.evaluate(f"document.querySelector('{place}').scrollIntoView()" if place else top)
    picture = Image.open(io.BytesIO(sheet.screenshot())).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(HERE / f"{name}.png", optimize=True)
    sheet.close()


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        played = make_season("spring", n_scenes=40, seed=7)
        photograph(write_season_site(played, folder / "site").page.resolve())
