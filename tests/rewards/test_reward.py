"""The reward of a clip: parts, formula, map, failures."""

from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unreel
from facts import FACTS
from scripted import FAKE, ScriptedReviewer
from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import (
    LocatedSegment,
    LocateVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
    Verdict,
)
from unreel.rewards.formula import compute_reward
from unreel.rewards.model import RewardModel
from unreel.rewards.result import FORMULA, PARTS, ReviewerVerdict, Reward, RewardMap, RewardMapTrace
from unreel.rewards.service.request_items import (
    ScoredClip,
    parse_scored_clip,
    serialise_scored_clip,
)

CLIP = Clip(id=compute_placeholder_clip_id("a"), location="a.mp4", facts=FACTS)
"""2 seconds, 640 x 360."""
NOT_READ = Unparsed(UnparsedReason.MISSING)
PLACED = TraceVerdict(
    label=Label.GENERATED, box=Box(0, 0, 0.5, 0.5), start_us=1_000_000, explanation="It floats."
)
CALLED_REAL = TraceVerdict(label=Label.REAL, box=NOT_READ, start_us=NOT_READ, explanation=NOT_READ)


def rated(score: int | Unparsed) -> RealismVerdict:
    return RealismVerdict(score=score, problem="", adherence="")


CLIP_US = convert_to_microseconds(FACTS.video.duration_s)


def reward_of(*verdicts: tuple[str, str, Verdict | Failure]) -> Reward:
    return compute_reward([ReviewerVerdict(*verdict) for verdict in verdicts], CLIP, {})


def test_the_value_is_the_weighted_mean_of_the_measured_parts() -> None:
    reward = reward_of(("a", "trace", PLACED), ("a", "realism", rated(4)))
    assert reward.parts == {"real_probability": 0.0, "realism": 0.75, "traced_volume": 0.125}
    assert reward.value == pytest.approx((2 * 0 + 0.75 + (1 - 0.125)) / 4)
    assert (reward.failure, reward.calibrated, reward.formula) == (None, False, FORMULA)
    alone = reward_of(("a", "reality", RealityVerdict(label=Label.REAL, confidence=80.0)))
    assert alone.value == pytest.approx(0.8)
    assert reward_of(("a", "trace", CALLED_REAL)).value == 1.0


def test_answers_of_locate_count_by_their_label_and_unreadable_ones_fail() -> None:
    segment = LocatedSegment(Trace(span=TimeSpan(0, 1_000_000)))
    values = [
        reward_of(("a", "locate", LocateVerdict(segments=found))).value
        for found in ((), (segment,), NOT_READ)
    ]
    assert values == [1.0, 0.0, None]


def test_agreement_is_reported_and_has_no_weight() -> None:
    reward = reward_of(
        ("a", "trace", PLACED),
        ("b", "trace", CALLED_REAL),
        ("a", "realism", rated(5)),
        ("b", "realism", rated(3)),
    )
    assert reward.parts["agreement"] == pytest.approx((0 + 0.5) / 2)
    assert reward.value == pytest.approx((2 * 0.5 + 0.75 + (1 - 0.0625)) / 4)
    assert tuple(reward.parts) == PARTS


@pytest.mark.parametrize(
    ("protocol", "outcome", "reason"),
    [
        ("realism", Failure(FailureReason.OUT_OF_TIME, "30 s"), "out-of-time"),
        ("realism", rated(NOT_READ), "malformed-reply"),
        ("reality", RealityVerdict(label=NOT_READ), "malformed-reply"),
        ("reality", RealityVerdict(label=Label.REAL, confidence=NOT_READ), "malformed-reply"),
        (
            "trace",
            TraceVerdict(label=Label.GENERATED, box=NOT_READ, start_us=0, explanation=""),
            "malformed-reply",
        ),
        (
            "trace",
            TraceVerdict(label=NOT_READ, box=NOT_READ, start_us=NOT_READ, explanation=""),
            "malformed-reply",
        ),
    ],
)
def test_one_failed_verdict_gives_no_number_and_keeps_the_measured_parts(
    protocol: str, outcome: Verdict | Failure, reason: str
) -> None:
    reward = reward_of(("a", "trace", PLACED), ("b", protocol, outcome))
    assert reward.value is None
    assert reward.failure is not None
    assert reward.failure.reason.value == reason
    assert reward.failure.detail.startswith(f"b, {protocol}: ")
    assert "real_probability" in reward.parts
    assert not reward.calibrated


def test_a_reward_is_a_value_or_a_failure() -> None:
    with pytest.raises(InvalidValueError):
        Reward(value=None)
    with pytest.raises(InvalidValueError):
        Reward(value=0.5, failure=Failure(FailureReason.STOPPED, ""))
    with pytest.raises(InvalidValueError):
        Reward(value=float("nan"))


def test_a_failure_that_counts_as_0_turns_all_advantages_of_its_group_positive() -> None:
    def advantages(group: list[float]) -> list[float]:
        return [(value - fmean(group)) / stdev(group) for value in group]

    assert advantages([0.7, 0.8, 0.9]) == pytest.approx([-1, 0, 1])
    invented = advantages([0.7, 0.8, 0.9, 0.0])
    assert [round(a, 2) for a in invented[:3]] == [0.24, 0.49, 0.73]
    rewards = [Reward(value=0.7), Reward(value=0.8), Reward(value=0.9)]
    rewards.append(Reward(value=None, failure=Failure(FailureReason.OUT_OF_TIME, "")))
    measured = [reward.value for reward in rewards if reward.value is not None]
    assert advantages(measured) == pytest.approx([-1, 0, 1])


sides = st.floats(0, 0.99)


@given(
    st.lists(
        st.none() | st.tuples(sides, sides, st.integers(0, 3_000_000)), min_size=1, max_size=3
    ),
    st.integers(1, 12_000_000),
    st.integers(2, 2000),
)
def test_the_map_is_dense_bounded_and_its_mean_is_what_is_not_traced(
    drawn: list[tuple[float, float, int] | None], duration_us: int, width: int
) -> None:
    traces = tuple(d and RewardMapTrace(Box(d[0], d[1], 1, 1), d[2]) for d in drawn)
    reward_map = RewardMap(traces=traces, duration_us=duration_us, width=width, height=360)
    array = reward_map.array
    assert array.dtype == np.float32
    assert array.shape == reward_map.shape
    assert np.isfinite(array).all()
    assert 0 <= array.min() <= array.max() <= 1
    volume = fmean(t.box.area * max(0, 1 - t.start_us / duration_us) if t else 0 for t in traces)
    assert array.mean(dtype=np.float64) == pytest.approx(1 - volume, abs=1e-5)
    assert len(reward_map.instants_s) == len(array)
    stored = serialise_scored_clip(ScoredClip(Reward(value=0.5, map=reward_map)))
    assert parse_scored_clip(stored).reward.map == reward_map


def test_the_map_takes_located_tubes_and_counts_overlaps_once() -> None:
    half = CLIP_US // 2
    track = (BoxAt(0, Box(0, 0, 0.5, 1)), BoxAt(half, Box(0.5, 0, 1, 1)))
    tube = LocatedSegment(trace=Trace(span=TimeSpan(0, CLIP_US), track=track))
    bare = LocatedSegment(trace=Trace(span=TimeSpan(0, half)))
    reward = reward_of(("a", "locate", LocateVerdict(segments=(tube, tube))))
    assert reward.map is not None
    array = reward.map.array
    middle = array.shape[2] // 2
    assert array[0, :, : middle - 1].max() == 0
    assert array[0, :, middle + 1 :].min() == 1
    assert array[-1, :, : middle - 1].min() == 1
    assert array.mean() == pytest.approx(0.5, abs=0.02)
    assert "traced_volume" not in reward.parts
    stored = serialise_scored_clip(ScoredClip(reward))
    assert parse_scored_clip(stored).reward.map == reward.map
    whole = reward_of(("a", "locate", LocateVerdict(segments=(bare,)))).map
    assert whole is not None
    assert (whole.array[0].max(), whole.array[-1].min()) == (0, 1)
    clean = reward_of(("a", "locate", LocateVerdict(segments=())))
    assert clean.value == 1.0


def test_the_map_is_0_inside_the_box_after_the_onset() -> None:
    reward_map = reward_of(("a", "trace", PLACED)).map
    assert reward_map is not None
    array, instants_s = reward_map.array, reward_map.instants_s
    assert array.shape == (16, 36, 64)
    assert (array[instants_s < 1] == 1).all()
    late = array[instants_s > 1]
    assert (late[:, :18, :32] == 0).all()
    assert late.sum() == late.size * 0.75


def test_a_reward_from_python(clip: Path, scripted: ScriptedReviewer) -> None:
    reward = unreel.reward(clip, models=scripted, trusted=True)
    assert reward.parts["realism"] == 0.5
    assert reward.parts["traced_volume"] == pytest.approx(0.75 / 16)
    assert reward.value == pytest.approx((0 + 0.5 + 1 - 0.75 / 16) / 4)
    assert [v.protocol for v in reward.verdicts] == ["trace", "realism"]
    assert str(reward).startswith("0.363 (reward@1, not calibrated; real_probability 0.000")


def test_an_undecodable_file_and_a_missing_one_are_failures(
    tmp_path: Path, scripted: ScriptedReviewer
) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video" * 1000)
    with RewardModel(scripted) as model:
        first, second = model.score_batch([broken, tmp_path / "missing.mp4"])
    assert first.failure is not None
    assert first.failure.reason is FailureReason.FORMAT_REFUSED
    assert second.failure is not None
    assert second.failure.reason is FailureReason.NOT_A_FILE
    assert scripted.keys == []


def test_a_refusal_and_a_prose_answer_give_no_number(clip: Path) -> None:
    sorry = ScriptedReviewer("sorry", {"reality": "I'm sorry, but I can't help with that."})
    with RewardModel(sorry, protocols=["reality"], trusted=True) as model:
        reward = model.score(clip)
    assert reward.failure is not None
    assert reward.failure.reason is FailureReason.REFUSED


def test_equal_clips_under_way_share_one_question(clip: Path, scripted: ScriptedReviewer) -> None:
    with RewardModel(scripted, trusted=True) as model:
        rewards = model.score_batch([clip] * 4)
    assert len({reward.value for reward in rewards}) == 1
    assert len(set(scripted.keys)) == 2
    assert FAKE in scripted.answers.values()


def test_settings_that_change_a_reward_change_the_identity(scripted: ScriptedReviewer) -> None:
    ways = [
        {},
        {"protocols": ["trace"]},
        {"condition": {"sampling": "uniform-4"}},
        {"parser": "strict"},
    ]
    found = set()
    for way in ways:
        with RewardModel(scripted, trusted=True, **way) as model:  # type: ignore[arg-type]
            found.add(model.identity)
    assert len(found) == len(ways)
