"""Seasons for the tests of their pages: played by nobody, ranked by shares alone."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import ANSWERED_GENERATED, SeasonAnswerTable
from unreel.arena.boards.leaderboard_metrics import (
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
)
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.report.season.clip_answers import ReviewerByClipAnswers, index_answers_by_clip
from unreel.report.season.page_data import SeasonClipDetails, SeasonPageData

HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e' {{7*7}} $--accent"
LONG = "name-of-three-hundred-letters-" * 10
CREATORS = ("Kling 2.1", "Sora 2/image+text", "Veo 3.1", "Wan 2.2")
CONTROLS = ("cropped", "recompressed")
ABILITIES = {"coin": 0.0, "gpt-5.2": 1.4, "motion": 0.2, "qwen3-vl": 1.0, "seer": 0.7, "tiny": 0.3}
FLOORS = ("coin", "motion")


def season(
    name: str = "spring",
    *,
    abilities: Mapping[str, float] = ABILITIES,
    creators: tuple[str, ...] = CREATORS,
    n_scenes: int = 24,
    conditions: tuple[str, ...] = ("uniform-8",),
    **told: Any,
) -> SeasonPageData:
    """A season under each condition; `tiny` never met the last creator."""
    shown = lineup(tuple(sorted(creators)), n_scenes=n_scenes, controls=CONTROLS)
    missing = [("tiny", shown.creators[-1])] if "tiny" in abilities else []
    floors = [floor for floor in FLOORS if floor in abilities]
    plays = [
        play(shown, abilities, seed=seed, condition=condition, floors=floors, never_met=missing)
        for seed, condition in enumerate(conditions)
    ]
    return SeasonPageData(
        name=name,
        facts=(
            ("Benchmark", "clips"),
            ("Digest", "0" * 64),
            ("Protocol", "reality"),
            ("Seed", "0"),
        ),
        answer_tables=tuple(plays),
        leaderboards=tuple(map(stand, plays)),
        clips={clip: told_of(clip) for clip in shown.names},
        **told,
    )


def told_of(clip: str) -> SeasonClipDetails:
    """What a creator would tell."""
    if clip.endswith("/real"):
        return SeasonClipDetails()
    facts = (("Model", clip.partition("/")[2]), ("Seed", "7"), ("Parameters", "steps 30"))
    return SeasonClipDetails(facts=facts, cost_usd=Decimal("0.05"), took_us=12_500_000)


def stand(played: SeasonAnswerTable) -> SeasonLeaderboard:
    """Both boards by plain shares, with intervals of the textbook."""
    heard = index_answers_by_clip(played)
    makers = {name: heard.clips_of(name) for name in played.clips.sources}
    creators = [(name, makers[name]) for name in played.clips.creators]
    reviewers = [_reviewer(heard, place) for place in range(len(played.reviewers))]
    made = [_creator(heard, name, clips) for name, clips in creators]
    controls = [_control(heard, name, makers[name]) for name in played.clips.controls]
    return SeasonLeaderboard(
        condition=played.condition,
        reviewers=_ranked(reviewers, "accuracy", falls=True),
        creators=(*_ranked(made, "fakeness", falls=False), *controls),
        cells=tuple(
            _cell(heard, place, name, clips)
            for place in range(len(played.reviewers))
            for name, clips in (*creators, *((c, makers[c]) for c in played.clips.controls))
            if heard.is_sent(place)[clips].any()
        ),
        n_scenes=len(played.clips.scenes),
        n_resamples=1000,
    )


def share(hits: np.ndarray, of: np.ndarray) -> Measured:
    """Percent of `of` in `hits`."""
    n = int(of.sum())
    if not n:
        return Unmeasured("no answer could be read")
    p = float((hits & of).sum()) / n
    half = 1.96 * (p * (1 - p) / n) ** 0.5
    return Estimate(
        value=100 * p,
        low=100 * max(0.0, p - half),
        high=100 * min(1.0, p + half),
        n=n,
        n_clusters=n,
    )


def _reviewer(heard: ReviewerByClipAnswers, place: int) -> LeaderboardRow:
    name = heard.answer_table.reviewers[place]
    made = heard.truth == ANSWERED_GENERATED
    read, right, said = heard.read[place], heard.right[place], heard.answer_codes[place]
    asked = heard.is_sent(place)
    makers = {maker: heard.clips_of(maker) for maker in heard.answer_table.clips.sources}
    lacks = [maker for maker, clips in makers.items() if len(clips) and not asked[clips].any()]
    return LeaderboardRow(
        name=name,
        kind="floor" if name in heard.answer_table.floors else "reviewer",
        figures={
            "accuracy": share(right, read),
            "caught": share(said == ANSWERED_GENERATED, read & made),
            "false-alarms": share(said == ANSWERED_GENERATED, read & ~made),
            "said-real": share(said != ANSWERED_GENERATED, read),
            "answered": share(read, asked),
            "ability": Unmeasured("the skill model needs 20 scenes"),
        },
        lacks=tuple(lacks),
    )


def _creator(heard: ReviewerByClipAnswers, name: str, clips: np.ndarray) -> LeaderboardRow:
    said, read = heard.answer_codes[:, clips], heard.read[:, clips]
    fakeness = share(said == ANSWERED_GENERATED, read)
    return LeaderboardRow(name=name, kind="creator", figures={"fakeness": fakeness})


def _control(heard: ReviewerByClipAnswers, name: str, clips: np.ndarray) -> LeaderboardRow:
    said, read = heard.answer_codes[:, clips], heard.read[:, clips]
    figures = {"called-generated": share(said == ANSWERED_GENERATED, read)}
    return LeaderboardRow(name=name, kind="control", figures=figures)


def _cell(
    heard: ReviewerByClipAnswers, place: int, creator: str, clips: np.ndarray
) -> ReviewerCreatorCell:
    asked = heard.is_sent(place)[clips]
    said, read = heard.answer_codes[place, clips], heard.read[place, clips]
    return ReviewerCreatorCell(
        reviewer=heard.answer_table.reviewers[place],
        creator=creator,
        caught=share(said == ANSWERED_GENERATED, read),
        n_asked=int(asked.sum()),
        n_silent=int((asked & ~read).sum()),
    )


def _ranked(rows: list[LeaderboardRow], figure: str, *, falls: bool) -> tuple[LeaderboardRow, ...]:
    """With ranks for those that compete and lack nothing; then those that lack, then floors."""
    from dataclasses import replace

    def height(row: LeaderboardRow) -> float:
        known = row.figures[figure]
        value = known.value if isinstance(known, Estimate) else 0.0
        return -value if falls else value

    ordered = sorted(rows, key=height)
    placed = [s for s in ordered if s.kind in {"reviewer", "creator"} and not s.lacks]
    others = sorted((s for s in ordered if s not in placed), key=lambda s: s.kind == "floor")
    names = [standing.name for standing in placed]
    ranked = [
        replace(
            standing,
            rank=rank,
            first_class=rank <= 2,
            above={
                n: 0.5 + 0.4 * np.sign(names.index(n) + 1 - rank)
                for n in names
                if n != standing.name
            },
        )
        for rank, standing in enumerate(placed, start=1)
    ]
    return (*ranked, *others)
