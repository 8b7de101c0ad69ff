"""Floors say what the instruments can read, and learn nothing from the clip's own creator."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId, Generated, Origin, Real
from unreel.core.content_ids import digest
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.question import Condition
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
)
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.reviewers.baselines.constant import (
    CoinReviewer,
    build_always_generated_reviewer,
    build_always_real_reviewer,
    format_baseline_answer,
)
from unreel.reviewers.baselines.fitting import (
    BaselineTrainingClip,
    FittedBaselineReviewer,
    cross_fit_baseline,
    fit_logistic_model,
)
from unreel.reviewers.baselines.metadata import fit_metadata_baseline
from unreel.reviewers.baselines.motion import compute_motion_features
from unreel.reviewers.contract import ClipInput, ReviewRequest
from unreel.testing.reviewers import sample_clip_input

MakeSheet = Callable[..., ReviewRequest]
SPACE = parse_box_space("unit", width=640, height=360)


def said(request: ReviewRequest, *p_generated: float) -> object:
    """The verdict that the instrument reads, strictly, in a floor's answer."""
    reply = format_baseline_answer(request, p_generated)
    assert isinstance(reply, Reply)
    reading = AnswerContext(mode="strict", prompt=request.condition.prompt, space=SPACE)
    match get_protocol(request.instrument.protocol).parse(reply.text, reading):
        case TraceVerdict(label=label) | RealityVerdict(label=label):
            return label
        case RealismVerdict(score=score):
            return score
        case PreferenceVerdict(real=real):
            return real
        case _:
            return None


@pytest.mark.parametrize("name", ["trace", "reality"])
def test_every_variant_reads_a_floors_label(name: str, make_sheet: MakeSheet) -> None:
    for variant in get_protocol(name).prompts:
        sheet = make_sheet(protocol=name, condition=Condition(prompt=variant))
        assert said(sheet, 0.9) is Label.GENERATED
        assert said(sheet, 0.1) is Label.REAL


def test_every_variant_reads_a_floors_score(make_sheet: MakeSheet) -> None:
    for variant in get_protocol("realism").prompts:
        sheet = make_sheet(protocol="realism", condition=Condition(prompt=variant))
        assert [said(sheet, p) for p in (0.0, 0.3, 0.5, 0.7, 1.0)] == [5, 4, 3, 2, 1]


def test_of_a_pair_the_less_suspect_clip_is_called_real(make_sheet: MakeSheet) -> None:
    sheet = make_sheet(protocol="preference", n_clips=2)
    assert said(sheet, 0.2, 0.9) is Position.FIRST
    assert said(sheet, 0.9, 0.2) is Position.SECOND
    assert said(sheet, 0.0, 0.0) is Position.FIRST
    assert said(sheet, 1.0, 1.0) is Position.SECOND


def test_the_coin_is_fair_repeats_itself_and_follows_its_seed(make_sheet: MakeSheet) -> None:
    def tosses(seed: int) -> list[str]:
        coin = CoinReviewer(seed=seed)
        replies = [asyncio.run(coin.answer(make_sheet(n))) for n in range(400)]
        return [reply.text for reply in replies if isinstance(reply, Reply)]

    assert tosses(1) == tosses(1) != tosses(2)
    assert 160 < tosses(1).count("<answer>1</answer>") < 240


def test_the_constant_floors_never_change_their_mind(make_sheet: MakeSheet) -> None:
    sheet = make_sheet()
    assert asyncio.run(build_always_real_reviewer().answer(sheet)) == Reply(
        text="<answer>1</answer>"
    )
    assert asyncio.run(build_always_generated_reviewer().answer(sheet)) == Reply(
        text="<answer>0</answer>"
    )
    assert [build_always_real_reviewer().name, build_always_generated_reviewer().name] == [
        "always-real",
        "always-generated",
    ]


def training_clip(
    number: int, origin: Origin, *, group: str = "", **video: object
) -> BaselineTrainingClip:
    exhibit = sample_clip_input("x")
    facts = exhibit.clip.facts
    facts = replace(facts, video=replace(facts.video, **video))  # type: ignore[arg-type]
    clip = Clip(id=ClipId(digest("training_clip", str(number))), location="x.mp4", facts=facts)
    return BaselineTrainingClip(clip_input=replace(exhibit, clip=clip), origin=origin, group=group)


def accuracy(
    reviewer: FittedBaselineReviewer, clips: list[BaselineTrainingClip], make: MakeSheet
) -> float:
    right = []
    for item in clips:
        sheet = replace(make(), inputs=(item.clip_input,))
        reply = asyncio.run(reviewer.answer(sheet))
        assert isinstance(reply, Reply)
        right.append((reply.text == "<answer>0</answer>") == (item.creator is not None))
    return sum(right) / len(right)


def origins(n: int) -> list[Origin]:
    """As many real clips as generated ones, by five creators."""
    return [Real() if i % 2 else Generated(f"creator {i // 2 % 5}") for i in range(n)]


def test_a_shortcut_that_all_creators_share_is_found(make_sheet: MakeSheet) -> None:
    items = [
        training_clip(i, origin, average_rate=Fraction(30 if isinstance(origin, Real) else 24))
        for i, origin in enumerate(origins(60))
    ]
    assert accuracy(fit_metadata_baseline(items, seed=1), items, make_sheet) == 1


def test_a_mark_of_one_creator_alone_does_not_give_its_clips_away(make_sheet: MakeSheet) -> None:
    def codec(origin: Origin) -> str:
        return "h264" if isinstance(origin, Real) else f"codec of {origin.creator}"

    def extract(clip_input: ClipInput) -> dict[str, float]:
        name = clip_input.clip.facts.video.codec
        return {} if name == "h264" else {name: 1.0}

    items = [training_clip(i, origin, codec=codec(origin)) for i, origin in enumerate(origins(60))]
    fitted = cross_fit_baseline(items, kind="mark", wants=frozenset(), extract=extract, seed=1)
    seen = fitted.models[""]
    fakes = [item for item in items if item.creator is not None]
    assert all(seen.p_generated(extract(item.clip_input)) > 0.5 for item in fakes)
    assert accuracy(fitted, fakes, make_sheet) == 0, "a held-out creator's mark must mean nothing"


def test_clips_of_one_scene_are_held_out_together(make_sheet: MakeSheet) -> None:
    def scene_only(clip_input: ClipInput) -> dict[str, float]:
        return {f"{clip_input.clip.facts.video.width}": 1.0}

    items = [
        training_clip(i, origin, width=100 + i // 2, group=f"scene {i // 2}")
        for i, origin in enumerate(origins(60))
    ]
    fitted = cross_fit_baseline(items, kind="scene", wants=frozenset(), extract=scene_only, seed=1)
    beliefs = [
        fitted.models[fitted.held_out[item.clip_input.clip.id]].p_generated(
            scene_only(item.clip_input)
        )
        for item in items
    ]
    assert all(abs(belief - 0.5) < 0.2 for belief in beliefs)


def in_scenes(creators: str, n_scenes: int) -> list[BaselineTrainingClip]:
    """Every creator covers every scene beside its real clip; all generated clips have 24 frames a second."""
    makers: list[Origin] = [Real(), *map(Generated, creators)]
    return [
        training_clip(
            len(makers) * scene + i,
            origin,
            group=f"scene {scene}",
            average_rate=Fraction(30 if isinstance(origin, Real) else 24),
        )
        for scene in range(n_scenes)
        for i, origin in enumerate(makers)
    ]


@pytest.mark.parametrize("creators", ["A", "AB", "ABCDEFG"])
def test_a_shortcut_is_found_where_every_creator_covers_every_scene(
    creators: str, make_sheet: MakeSheet
) -> None:
    items = in_scenes(creators, 8)
    assert accuracy(fit_metadata_baseline(items, seed=1), items, make_sheet) == 1


def test_where_labels_mean_nothing_a_floor_is_at_chance() -> None:
    """One score for each clip, from a model without its side's part, gave 0.44 on these sets."""
    told = []
    for number in range(60):
        dice = random.Random(number)
        makers: list[Origin] = [
            Real() if i % 2 else Generated(f"creator {i // 2 % 2}") for i in range(40)
        ]
        items = [training_clip(i, origin) for i, origin in enumerate(makers)]
        noise = {i.clip_input.clip.id: {name: dice.gauss(0, 1) for name in "abc"} for i in items}

        def extract(
            clip_input: ClipInput, noise: dict[ClipId, dict[str, float]] = noise
        ) -> dict[str, float]:
            return noise[clip_input.clip.id]

        fitted = cross_fit_baseline(
            items, kind="noise", wants=frozenset(), extract=extract, seed=number
        )
        beliefs = np.array(
            [fitted.models[fitted.held_out[clip]].p_generated(own) for clip, own in noise.items()]
        )
        made = np.array([item.creator is not None for item in items])
        told.append((beliefs[made][:, None] > beliefs[~made]).mean())
    assert np.mean(told) == pytest.approx(0.5, abs=0.03)


def test_our_regression_agrees_with_scikit_learn() -> None:
    dice = np.random.default_rng(3)
    table = dice.normal(size=(120, 4))
    truth = table @ [1.0, -2.0, 0.0, 0.5] + dice.normal(size=120) > 0.3
    names = ["a", "b", "c", "d"]
    rows = [
        (dict(zip(names, values, strict=True)), bool(label))
        for values, label in zip(table.tolist(), truth.tolist(), strict=True)
    ]
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    share = truth.mean()
    weight = np.where(truth, 0.5 / share, 0.5 / (1 - share))
    theirs = LogisticRegression(C=1.0, tol=1e-8).fit(scaled, truth, sample_weight=weight)
    ours = fit_logistic_model(rows, ridge=1.0)
    expected = theirs.predict_proba(scaled)[:, 1]
    found = [ours.p_generated(features) for features, _ in rows]
    assert np.abs(np.array(found) - expected).max() < 1e-3


def test_motion_needs_three_readable_frames() -> None:
    exhibit = sample_clip_input("x")
    few = compute_motion_features(replace(exhibit, frames=exhibit.frames[:2]))
    broken = compute_motion_features(
        replace(exhibit, frames=(replace(exhibit.frames[0], jpeg=b"?"),) * 3)
    )
    assert isinstance(few, Failure)
    assert isinstance(broken, Failure)
    assert [few.reason, broken.reason] == [
        FailureReason.REQUEST_REJECTED,
        FailureReason.UNDECODABLE,
    ]
