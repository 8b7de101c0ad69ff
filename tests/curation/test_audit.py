"""What an audit says of sets whose leaks are known, planted in what is known of their clips."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from unreel.core.box import Box
from unreel.core.clip import AudioFacts, ClipFacts, FileTag, VideoFacts
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.curation.audit.audit_report import AUDIT_JSON, UNGROUPED_ALARMS, format_audit_markdown
from unreel.curation.audit.clip_features import (
    SEGMENT,
    AuditFeatureSet,
    ClipAuditData,
    WindowAuditData,
)
from unreel.curation.audit.cross_fit import (
    count_cross_fit_wins,
    permute_labels_by_scene,
    swap_labels_of_pairs,
)
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.audit.label_leaks import (
    MOST_PER_SIDE,
    LabelLeakAudit,
    LabelLeakFinding,
    audit_label_leaks,
    judge_label_leak,
)
from unreel.curation.watermark.regions_and_ocr import (
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


def value(found: LabelLeakAudit, view: AuditFeatureSet) -> float:
    auc = found[view].auc
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


def test_a_leak_says_what_either_side_is_like() -> None:
    leak = audit_label_leaks(planted(sound_on_reals), seed=1)[AuditFeatureSet.METADATA].leaks[0]
    assert (leak.generated, leak.real) == ("0% sound", "100% sound")


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


def test_a_frame_that_tells_is_a_warning_and_no_failure() -> None:
    found = audit_label_leaks(planted(noise_of_generated, n=200), seed=1)
    assert found[AuditFeatureSet.FRAME].finding is LabelLeakFinding.LEAKS
    assert found.finding is not LabelLeakFinding.LEAKS
    assert "warning" in format_audit_markdown(found)


def test_the_mark_of_one_creator_tells_its_own_clips_and_nothing_of_the_others() -> None:
    def of_one(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
        return logo_on_generated(one, dice) if one.creator == "creator 0" else one

    found = audit_label_leaks(planted(of_one), seed=1)[AuditFeatureSet.WATERMARK]
    assert isinstance(found.auc, Estimate)
    assert isinstance(found.transfer, Estimate)
    assert found.auc.value == pytest.approx(0.6, abs=0.02)
    assert found.transfer.value == pytest.approx(0.5, abs=0.05)


SIZES = tuple(range(640, 1280, 128))


def sized(real_sizes: Sequence[int], seed: int) -> list[ClipAuditData]:
    """Five creators with 20 clips in a size of their own, and 100 real clips of the given sizes."""
    return [
        with_video(
            replace(
                unremarkable(i + 200 * seed),
                creator=f"creator {i // 20}" if i < 100 else None,
                watermarks=WatermarkSearchResult(),
            ),
            width=SIZES[i // 20] if i < 100 else real_sizes[i - 100],
            height=720,
        )
        for i in range(200)
    ]


def test_creators_with_sizes_of_their_own_are_clean_if_real_clips_have_the_same_sizes() -> None:
    audits = [audit_label_leaks(sized(SIZES * 20, seed), seed=seed) for seed in range(4)]
    assert [found.finding for found in audits] == [LabelLeakFinding.CLEAN] * 4
    for found in audits:
        transfer = found[AuditFeatureSet.METADATA].transfer
        assert isinstance(transfer, Estimate)
        assert transfer.high < 0.5
        assert "unseen creators" in format_audit_markdown(found)


def test_sizes_that_real_clips_have_more_often_are_found_without_any_order_among_them() -> None:
    rates = (5, 40, 5, 40, 10)  # the best model of the size alone reaches an AUC of 0.71
    real = [size for size, n in zip(SIZES, rates, strict=True) for _ in range(n)]
    found = audit_label_leaks(sized(real, seed=1), seed=1)
    assert found.finding is LabelLeakFinding.LEAKS
    assert found[AuditFeatureSet.METADATA].leaks[0].feature == "size"


def test_clean_above_chance_says_what_that_means() -> None:
    found = audit_label_leaks(planted(untouched, n=200), seed=1)
    auc = Estimate(value=0.57, low=0.52, high=0.62, n=200)
    view = replace(found[AuditFeatureSet.METADATA], auc=auc, finding=LabelLeakFinding.CLEAN)
    card = format_audit_markdown(replace(found, views=(view, *found.views[1:])))
    assert "in 57% of pairs; up to 60% is not reported as a leak" in card
    assert "of pairs" not in format_audit_markdown(found)


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


def test_a_set_by_one_creator_is_judged_by_held_out_clips() -> None:
    items = [size_of_generated(unremarkable(i, n_creators=1), random.Random(i)) for i in range(60)]
    assert value(audit_label_leaks(items, seed=1), AuditFeatureSet.METADATA) >= 0.95


def test_clips_that_could_not_be_read_are_counted_and_left_out() -> None:
    lost = Failure(FailureReason.UNDECODABLE, "damaged")
    items = planted(sound_on_reals)
    items[0] = replace(items[0], facts=lost, frame=lost, watermarks=lost)
    found = audit_label_leaks(items, seed=1)
    assert [view.n_unread for view in found.views] == [1, 1, 1]
    assert found[AuditFeatureSet.METADATA].n_generated == 29


def test_the_order_of_the_clips_changes_nothing() -> None:
    items = planted(size_of_generated, n=40)
    assert audit_label_leaks(items, seed=1) == audit_label_leaks(list(reversed(items)), seed=1)


def test_a_giveaway_names_its_side() -> None:
    found = audit_label_leaks(planted(sound_on_reals), seed=1)[AuditFeatureSet.METADATA]
    sides = {int(one.clip[-4:]) % 2: one.label for one in found.giveaways}
    assert sides.get(1, Label.REAL) is Label.REAL
    assert sides.get(0, Label.GENERATED) is Label.GENERATED
    assert all(one.told_from >= 0.95 for one in found.giveaways)


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
    assert judge_label_leak(auc, n_least=20, p_value=0.05) is finding
    assert judge_label_leak(auc, n_least=19, p_value=0.05) is LabelLeakFinding.INCONCLUSIVE
    assert judge_label_leak(auc, n_least=20, p_value=0.06) is not LabelLeakFinding.LEAKS
    assert (
        judge_label_leak(auc, n_least=20, p_value=0.05, n_unjudged=1) is not LabelLeakFinding.CLEAN
    )


def test_a_huge_set_is_judged_by_a_sample() -> None:
    base = unremarkable(0)
    thin: Sequence[ClipAuditData] = [
        replace(base, clip=str(i), creator=None if i % 2 else "abc"[i // 2 % 3], frame={})
        for i in range(2 * MOST_PER_SIDE + 200)
    ]
    found = audit_label_leaks(thin, seed=1)[AuditFeatureSet.METADATA]
    assert (found.n_real, found.n_generated) == (MOST_PER_SIDE, MOST_PER_SIDE)


def test_an_audit_survives_its_json() -> None:
    found = audit_label_leaks(planted(logo_on_generated), seed=1)
    assert AUDIT_JSON.validate_json(AUDIT_JSON.dump_json(found)) == found


def test_a_tag_cannot_break_out_of_its_table() -> None:
    def hostile(one: ClipAuditData, dice: random.Random) -> ClipAuditData:
        tag = FileTag("encoder", "x | <b>y</b>") if one.creator else FileTag("encoder", "z")
        return with_facts(one, tags=(tag,))

    text = format_audit_markdown(audit_label_leaks(planted(hostile), seed=1))
    rows = [line for line in text.splitlines() if "tag encoder" in line and line.startswith("|")]
    assert rows
    assert all(row.replace("\\|", "").count("|") == 5 and "<b>" not in row for row in rows)


def picture(*, blur: float = 0.0, blocks: int = 0, bars: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(2)
    grey = rng.normal(128, 30, (240, 320))
    if blur:
        from scipy import ndimage

        grey = ndimage.gaussian_filter(grey, blur)
    if blocks:
        grey += 20 * rng.normal(size=(240 // blocks, 320 // blocks)).repeat(blocks, 0).repeat(
            blocks, 1
        )
    if bars:
        grey[:bars] = grey[-bars:] = 0
    rgb = np.clip(grey, 0, 255).astype(np.uint8)
    return dict(compute_frame_features(np.stack([rgb] * 3, axis=-1)))


def test_the_numbers_of_a_frame_measure_what_they_are_called() -> None:
    plain = picture()
    assert picture(blur=2)["noise"] < plain["noise"] - 1
    assert picture(blur=2)["spectrum 0"] < plain["spectrum 0"] - 1
    assert picture(blocks=8, blur=2)["blocks 8"] > picture(blur=2)["blocks 8"] + 0.5
    assert picture(bars=30)["border down"] == pytest.approx(0.25)
    assert plain["border down"] == plain["border across"] == 0


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("size", [(2, 2), (9, 40)])
def test_a_flat_or_tiny_frame_still_gives_finite_numbers(level: int, size: tuple[int, int]) -> None:
    numbers = compute_frame_features(np.full((*size, 3), level, np.uint8))
    assert all(np.isfinite(number) for number in numbers.values())
    assert numbers.keys() == picture().keys()


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


def test_a_leak_in_a_set_of_one_scene_is_inconclusive_and_says_what_is_missing() -> None:
    items = [replace(one, group="the only one") for one in planted(other_files)]
    found = audit_label_leaks(items, seed=1)
    assert found.finding is LabelLeakFinding.INCONCLUSIVE
    assert "Add scenes" in format_audit_markdown(found)


def test_real_clips_of_scenes_that_nobody_generated_count_too() -> None:
    half = [
        one
        for one in paired(40, "AB", other_files)
        if one.creator is None or int(one.clip[:3]) % 2 == 0
    ]
    found = audit_label_leaks(half, seed=1)
    assert (
        found[AuditFeatureSet.METADATA].n_real,
        found[AuditFeatureSet.METADATA].n_generated,
    ) == (40, 40)
    assert found.finding is LabelLeakFinding.LEAKS


def test_groups_may_be_known_for_some_clips_only() -> None:
    some = [
        replace(one, group=one.group if i % 3 else "")
        for i, one in enumerate(paired(24, "AB", other_files))
    ]
    assert audit_label_leaks(some, seed=1).finding is LabelLeakFinding.LEAKS


def test_a_creator_for_each_clip_is_judged() -> None:
    many = [
        replace(one, creator=one.creator and f"{one.creator} {i}")
        for i, one in enumerate(planted(other_files))
    ]
    assert audit_label_leaks(many, seed=1).finding is LabelLeakFinding.LEAKS


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


def test_two_clips_are_no_set() -> None:
    found = audit_label_leaks(planted(other_files, n=2), seed=1)
    assert found.finding is LabelLeakFinding.INCONCLUSIVE
    assert all(isinstance(view.auc, Unmeasured) for view in found.views)


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


def test_labels_are_dealt_anew_within_their_scene_or_by_whole_scenes() -> None:
    owners = [ClipCreatorAndScene(None if i % 2 else "A", f"both {i // 2}") for i in range(20)]
    owners += [ClipCreatorAndScene(None if i < 10 else "B", f"one {i // 2}") for i in range(20)]
    folding = assign_clip_folds(owners, seed=1)
    assert not isinstance(folding, Unmeasured)
    for labels in permute_labels_by_scene(owners, folding, seed=1):
        makers = [owners[i].creator for i in labels]
        assert all({makers[i], makers[i + 1]} == {None, "A"} for i in range(0, 20, 2))
        assert all(makers[i] == makers[i + 1] for i in range(20, 40, 2))
        assert sorted(map(str, makers)) == sorted(str(own.creator) for own in owners)
        assert np.all(folding.folds[labels] == folding.folds)


def test_a_permutation_of_windows_never_splits_a_part() -> None:
    dice = random.Random(5)
    pairs = [f"pair {pair}" for pair in range(7) for _ in range(2 * dice.randint(1, 4))]
    sides = [(pair, bool(i % 2)) for i, pair in enumerate(pairs)]
    dice.shuffle(sides)
    names, made = [pair for pair, _ in sides], np.array([own for _, own in sides])
    labels = swap_labels_of_pairs(names, made, seed=0)
    assert np.array_equal(np.sort(labels, axis=1), np.tile(np.arange(len(sides)), (len(labels), 1)))
    swaps = []
    for donors in labels:
        given: defaultdict[str, set[bool]] = defaultdict(set)
        for own, donor in enumerate(donors):
            assert names[own] == names[donor]
            given[names[own]].add(bool(made[own] != made[donor]))
        assert all(len(swapped) == 1 for swapped in given.values())
        swaps.append([min(given[pair]) for pair in sorted(given)])
    assert np.all((np.mean(swaps, axis=0) > 0.35) & (np.mean(swaps, axis=0) < 0.65))


def test_a_pair_needs_as_many_windows_of_both_labels() -> None:
    with pytest.raises(InvalidValueError, match="as many of both"):
        swap_labels_of_pairs(["a", "a", "a"], np.array([True, False, False]), seed=0)


def _windows(n_videos: int, *, leak: float = 0.0) -> list[WindowAuditData]:
    """Windows of two parts of each video, whose numbers are nearly constant within a part."""
    rng = np.random.default_rng(n_videos)
    found = []
    for video in range(n_videos):
        for creator in (SEGMENT, None):
            shot = rng.standard_normal(10)
            shot[0] += leak if creator else 0.0
            for start in range(4):
                values = shot + 0.1 * rng.standard_normal(10)
                found.append(
                    WindowAuditData(
                        clip=f"{video} {creator} {start}",
                        creator=creator,
                        group=f"{video}",
                        pair=f"{video}",
                        features={f"number {i}": float(own) for i, own in enumerate(values)},
                    )
                )
    return found


def test_windows_of_one_part_do_not_count_as_independent() -> None:
    view = audit_label_leaks(_windows(40), seed=0, views=[AuditFeatureSet.WINDOW]).views[0]
    assert isinstance(view.auc, Estimate)
    assert view.auc.high - view.auc.low > 0.2  # 160 independent windows of a label: 0.13
    assert view.p_value is not None
    assert view.p_value > 0.05


def test_a_leak_of_windows_is_found() -> None:
    windows = _windows(60, leak=1.5)
    view = audit_label_leaks(windows, seed=0, views=[AuditFeatureSet.WINDOW]).views[0]
    assert view.finding is LabelLeakFinding.LEAKS
    assert view.leaks[0].feature == "number 0"


def test_a_sample_of_windows_has_complete_pairs() -> None:
    windows = _windows(MOST_PER_SIDE // 4 + 50)
    view = audit_label_leaks(windows, seed=0, views=[AuditFeatureSet.WINDOW]).views[0]
    assert (view.n_real, view.n_generated) == (MOST_PER_SIDE, MOST_PER_SIDE)


def test_an_audit_that_was_kept_before_labels_were_dealt_anew_is_still_shown() -> None:
    kept = AUDIT_JSON.dump_python(audit_label_leaks(planted(untouched, n=40), seed=1), mode="json")
    del kept["n_relabelled"], kept["grouped"]
    for view in kept["views"]:
        del view["p_value"], view["n_unjudged"], view["transfer"]
    earlier = AUDIT_JSON.validate_python(kept)
    assert [view.p_value for view in earlier.views] == [None] * 3
    assert "| model input | AUC | p | real |" in format_audit_markdown(earlier)
    assert "seen creators" not in format_audit_markdown(earlier)
