"""What an audit says of sets whose leaks are known, planted in what is known of their clips."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from unreel.core.box import Box
from unreel.core.clip import AudioFacts, ClipFacts, FileTag, VideoFacts
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.curation.audit.clip_features import AuditFeatureSet, ClipAuditData
from unreel.curation.audit.label_leaks import (
    MAX_PER_SIDE,
    LabelLeakAudit,
    LabelLeakFinding,
    audit_label_leaks,
    count_cross_fit_wins,
    judge_label_leak,
)
from unreel.curation.audit.step import UNGROUPED_ALARMS, format_audit_markdown
from unreel.curation.watermark.detection import (
    WatermarkKind,
    WatermarkRegion,
    WatermarkSearchResult,
)
from unreel.reviewers.baselines.folds import ClipCreatorAndScene, assign_clip_folds

Plant = Callable[[ClipAuditData, random.Random], ClipAuditData]


def unremarkable(number: int, *, n_creators: int = 5) -> ClipAuditData:
    """A clip whose file, frame and overlays have nothing to do with its label."""
    dice = random.Random(number)
    width, height = dice.choice([(1280, 720), (720, 1280), (640, 480), (854, 480)])
    rate, n_frames = dice.choice([24, 25, 30]), dice.randint(90, 200)
    video = VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=width,
        height=height,
        rotation_deg=0,
        n_frames=n_frames,
        average_rate=Fraction(rate),
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=Fraction(n_frames, rate),
    )
    tags = (
        FileTag("major_brand", "isom"),
        FileTag("signature", dice.choice(["x264 155", "x264 164"])),
    )
    return ClipAuditData(
        clip=f"clip {number:04}",
        creator=None if number % 2 else f"creator {number // 2 % n_creators}",
        facts=ClipFacts(
            container="mp4", size_bytes=dice.randint(10**6, 4 * 10**6), video=video, tags=tags
        ),
        frame={name: dice.gauss(0, 1) for name in ("noise", "sharpness", "contrast")},
        watermarks=WatermarkSearchResult(),
    )


def planted(plant: Plant, *, n: int = 60) -> list[ClipAuditData]:
    return [plant(unremarkable(i), random.Random(i)) for i in range(n)]


def with_facts(one: ClipAuditData, **facts: object) -> ClipAuditData:
    assert isinstance(one.facts, ClipFacts)
    return replace(one, facts=replace(one.facts, **facts))  # type: ignore[arg-type]


def with_video(one: ClipAuditData, **video: object) -> ClipAuditData:
    assert isinstance(one.facts, ClipFacts)
    return with_facts(one, video=replace(one.facts.video, **video))  # type: ignore[arg-type]


def sound_on_reals(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    sound = AudioFacts(codec="aac", sample_rate_hz=44_100, channels=2, duration_s=Fraction(5))
    return with_facts(one, audio=(sound,)) if one.creator is None else one


def tag_on_generated(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    tags = (FileTag("encoder", "Lavf61"),) if one.creator else (FileTag("encoder", "Lavf58"),)
    return with_facts(one, tags=tags)


def size_of_generated(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    return with_video(one, width=768, height=512) if one.creator else one


def logo_on_generated(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    mark = WatermarkRegion(box=Box(0.9, 0.9, 0.98, 0.97), kind=WatermarkKind.LOGO, stability=1.0)
    return replace(one, watermarks=WatermarkSearchResult(found=(mark,))) if one.creator else one


def noise_of_generated(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    assert not isinstance(one.frame, Failure)
    shift = 5.0 if one.creator else 0.0
    return replace(one, frame={**one.frame, "noise": dice.gauss(shift, 1)})


def one_length_for_generated(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    """Real clips are shorter as often as longer: no threshold tells, a value in the middle does."""
    n_frames = 120 if one.creator else dice.choice([dice.randint(60, 110), dice.randint(130, 200)])
    rate = Fraction(24)
    return with_video(
        one, n_frames=n_frames, average_rate=rate, duration_s=Fraction(n_frames) / rate
    )


def value(found: LabelLeakAudit, feature_set: AuditFeatureSet) -> float:
    auc = found[feature_set].auc
    assert isinstance(auc, Estimate)
    return auc.value


@pytest.mark.parametrize(
    ("plant", "view", "feature"),
    [
        (sound_on_reals, AuditFeatureSet.METADATA, "sound"),
        (tag_on_generated, AuditFeatureSet.METADATA, "tag encoder"),
        (size_of_generated, AuditFeatureSet.METADATA, "size"),
        (one_length_for_generated, AuditFeatureSet.METADATA, "length"),
        (logo_on_generated, AuditFeatureSet.WATERMARK, "any overlay"),
        (noise_of_generated, AuditFeatureSet.FRAME, "noise"),
    ],
)
def test_a_planted_leak_is_found_and_named(
    plant: Plant, view: AuditFeatureSet, feature: str
) -> None:
    found = audit_label_leaks(planted(plant), seed=1)
    assert value(found, view) >= 0.95
    assert found[view].finding is LabelLeakFinding.LEAKS
    assert found[view].leaks[0].feature == feature
    others = {one.finding for one in found.views if one.view is not view}
    assert LabelLeakFinding.LEAKS not in others
    assert found[view].n_giveaways >= 20
    assert feature in found[view].giveaways[0].because


def test_labels_dealt_at_random_are_told_no_better_than_by_a_coin() -> None:
    dice = random.Random(4)
    leaky = [logo_on_generated(noise_of_generated(size_of_generated(o, dice), dice), dice)
             for o in map(unremarkable, range(120))]  # fmt: skip
    creators = [one.creator for one in leaky]
    dice.shuffle(creators)
    shuffled = [replace(one, creator=own) for one, own in zip(leaky, creators, strict=True)]
    found = audit_label_leaks(shuffled, seed=1)
    for view in found.views:
        assert isinstance(view.auc, Estimate)
        assert view.auc.low <= 0.5 <= view.auc.high, view.view
        assert view.finding is not LabelLeakFinding.LEAKS


def test_the_mark_of_one_creator_tells_its_own_clips_and_nothing_of_the_others() -> None:
    def of_one(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
        return logo_on_generated(one, dice) if one.creator == "creator 0" else one

    found = audit_label_leaks(planted(of_one), seed=1)[AuditFeatureSet.WATERMARK]
    assert isinstance(found.auc, Estimate)
    assert isinstance(found.transfer, Estimate)
    assert found.auc.value == pytest.approx(0.6, abs=0.02)
    assert found.transfer.value == pytest.approx(0.5, abs=0.05)


def test_a_set_without_groups_is_warned_with_the_rate_of_false_alarms() -> None:
    card = format_audit_markdown(audit_label_leaks(planted(untouched), seed=1))
    assert f"{UNGROUPED_ALARMS} gave a false alarm" in card
    assert "gave a false alarm" not in format_audit_markdown(
        audit_label_leaks(paired(24, "ABC", untouched), seed=1)
    )


def test_a_tag_that_only_one_side_carries_tells_whatever_it_says() -> None:
    def prompts(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
        own = (FileTag("encoder", f"build {one.clip}"),) if one.creator else ()
        return with_facts(one, tags=own)

    assert value(audit_label_leaks(planted(prompts), seed=1), AuditFeatureSet.METADATA) >= 0.95


def test_clips_of_one_scene_are_never_on_both_sides() -> None:
    """Pairs of one scene share a mark that no other scene has: learnt, it would tell the label upside down."""
    owners = [
        ClipCreatorAndScene(None if i % 2 else f"creator {i // 2 % 5}", f"scene {i // 2}")
        for i in range(60)
    ]
    folding = assign_clip_folds(owners, seed=1)
    assert not isinstance(folding, Unmeasured)
    fitted = count_cross_fit_wins(np.eye(30).repeat(2, axis=0), folding, np.arange(60))
    assert fitted.n_unjudged == 0
    assert np.all(fitted.won == fitted.met / 2)


def test_few_clips_are_inconclusive_whatever_they_show() -> None:
    found = audit_label_leaks(planted(lambda one, _: one, n=12), seed=1)
    assert found[AuditFeatureSet.METADATA].finding is LabelLeakFinding.INCONCLUSIVE
    assert found.finding is LabelLeakFinding.INCONCLUSIVE


@pytest.mark.parametrize("creators", [[], [None] * 20, ["c"] * 20])
def test_a_set_without_two_sides_is_inconclusive(creators: list[str | None]) -> None:
    items = [replace(unremarkable(i), creator=own) for i, own in enumerate(creators)]
    found = audit_label_leaks(items, seed=1)
    assert found.finding is LabelLeakFinding.INCONCLUSIVE
    assert all(isinstance(view.auc, Unmeasured) for view in found.views)
    assert "not measured" in format_audit_markdown(found)


def test_clips_that_could_not_be_read_are_counted_and_left_out() -> None:
    lost = Failure(FailureReason.UNDECODABLE, "damaged")
    items = planted(sound_on_reals)
    items[0] = replace(items[0], facts=lost, frame=lost, watermarks=lost)
    found = audit_label_leaks(items, seed=1)
    assert [view.n_unread for view in found.views] == [1, 1, 1]
    assert found[AuditFeatureSet.METADATA].n_generated == 29


@pytest.mark.parametrize(
    ("ends", "finding"),
    [
        ((0.55, 0.65, 0.75), LabelLeakFinding.LEAKS),
        ((0.49, 0.65, 0.75), LabelLeakFinding.INCONCLUSIVE),
        ((0.55, 0.60, 0.65), LabelLeakFinding.CLEAN),
        ((0.40, 0.50, 0.71), LabelLeakFinding.INCONCLUSIVE),
        ((0.45, 0.50, 0.55), LabelLeakFinding.CLEAN),
        ((0.30, 0.42, 0.49), LabelLeakFinding.CLEAN),
        ((0.30, 0.38, 0.51), LabelLeakFinding.CLEAN),
        ((0.20, 0.30, 0.40), LabelLeakFinding.CLEAN),
    ],
)
def test_the_rule_is_the_one_of_the_decision(
    ends: tuple[float, float, float], finding: LabelLeakFinding
) -> None:
    low, middle, high = ends
    auc = Estimate(value=middle, low=low, high=high, n=100)
    assert judge_label_leak(auc, n_smaller_class=20, p_value=0.05) is finding
    assert judge_label_leak(auc, n_smaller_class=19, p_value=0.05) is LabelLeakFinding.INCONCLUSIVE
    assert judge_label_leak(auc, n_smaller_class=20, p_value=0.06) is not LabelLeakFinding.LEAKS
    assert (
        judge_label_leak(auc, n_smaller_class=20, p_value=0.05, n_unjudged=1)
        is not LabelLeakFinding.CLEAN
    )


def test_a_huge_set_is_judged_by_a_sample() -> None:
    base = unremarkable(0)
    thin: Sequence[ClipAuditData] = [
        replace(base, clip=str(i), creator=None if i % 2 else "abc"[i // 2 % 3], frame={})
        for i in range(2 * MAX_PER_SIDE + 200)
    ]
    found = audit_label_leaks(thin, seed=1)[AuditFeatureSet.METADATA]
    assert (found.n_real, found.n_generated) == (MAX_PER_SIDE, MAX_PER_SIDE)


def test_a_tag_cannot_break_out_of_its_table() -> None:
    def hostile(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
        tag = FileTag("encoder", "x | <b>y</b>") if one.creator else FileTag("encoder", "z")
        return with_facts(one, tags=(tag,))

    text = format_audit_markdown(audit_label_leaks(planted(hostile), seed=1))
    rows = [line for line in text.splitlines() if "tag encoder" in line and line.startswith("|")]
    assert rows
    assert all(row.replace("\\|", "").count("|") == 5 and "<b>" not in row for row in rows)


def paired(n_scenes: int, creators: Sequence[str], plant: Plant) -> list[ClipAuditData]:
    """Every creator covers every scene, beside the real clip of it."""
    makers = (None, *creators)
    return [
        plant(
            replace(
                unremarkable(len(makers) * scene + i),
                creator=maker,
                group=f"scene {scene}",
                clip=f"{scene:03} {i}",
            ),
            random.Random(scene),
        )
        for scene in range(n_scenes)
        for i, maker in enumerate(makers)
    ]


def untouched(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    return one


def other_files(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
    """Real: 1080p, VP9, 30 frames a second, with sound. Generated: 720p, H.264, 24, mute."""
    if one.creator is not None:
        return with_video(one, width=1280, height=720, average_rate=Fraction(24))
    tall = with_video(one, codec="vp9", width=1920, height=1080, average_rate=Fraction(30))
    return sound_on_reals(tall, dice)


@pytest.mark.parametrize("creators", ["A", "ABC", "ABCDEFG"])
def test_a_set_in_which_every_creator_covers_every_scene_is_seen_to_leak(creators: str) -> None:
    found = audit_label_leaks(paired(24, creators, other_files), seed=1)
    assert found.finding is LabelLeakFinding.LEAKS
    assert value(found, AuditFeatureSet.METADATA) == 1
    assert found[AuditFeatureSet.METADATA].p_value == pytest.approx(1 / 200)
    assert found[AuditFeatureSet.METADATA].n_unjudged == 0


def test_a_paired_set_without_a_leak_is_not_called_leaking() -> None:
    found = audit_label_leaks(paired(24, "ABC", untouched), seed=1)
    assert found.finding is not LabelLeakFinding.LEAKS
    assert found[AuditFeatureSet.METADATA].n_unjudged == 0


def test_twenty_generated_clips_among_six_hundred_real_ones_are_told() -> None:
    items = [
        replace(unremarkable(i), creator=f"creator {i // 31 % 5}" if i % 31 == 0 else None)
        for i in range(620)
    ]
    plain, leaking = (
        audit_label_leaks([plant(one, random.Random(i)) for i, one in enumerate(items)], seed=1)
        for plant in (untouched, other_files)
    )
    assert plain[AuditFeatureSet.METADATA].n_generated == 20
    assert plain.finding is not LabelLeakFinding.LEAKS
    assert leaking.finding is LabelLeakFinding.LEAKS


def test_what_no_model_can_judge_is_counted_and_never_clean() -> None:
    """No real clip of one scene could be read: the generated clips of its fold meet nobody."""
    lost = Failure(FailureReason.UNDECODABLE, "damaged")
    items = [
        one
        if one.creator
        else replace(one, group=f"film {i % 3}", watermarks=one.watermarks if i % 3 else lost)
        for i, one in enumerate(map(unremarkable, range(200)))
    ]
    found = audit_label_leaks(items, seed=1)
    assert found[AuditFeatureSet.WATERMARK].n_unjudged > 0
    assert found[AuditFeatureSet.WATERMARK].finding is not LabelLeakFinding.CLEAN
    assert "could not be audited" in format_audit_markdown(found)
