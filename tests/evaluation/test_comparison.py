"""Reviewers side by side on the clips that both judged."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.comparison import Difference
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Condition, Instrument
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
)
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.stats.clusters import SharedLabelNumbering
from unreel.stats.jackknife_values import (
    MOST_GROUPS,
    JackknifeEstimate,
    JackknifeGroups,
    jackknife_context,
)

Type = Callable[..., Any]
Rng = np.random.Generator


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(20261115)


def _side(
    name: str, instrument: str, rows: Sequence[ScoredQuestion[Any, Any]], **how: Any
) -> ComparedReviewer:
    names = [str(number) for number, _ in enumerate(rows)]
    condition = Condition(**how)
    return ComparedReviewer(
        reviewer=name,
        condition=condition,
        instrument=get_protocol(instrument),
        names=names,
        rows=rows,
    )


def _reality(rng: Rng, *, scenes: int = 40, skill: float = 0.7, shared: float = 0.5) -> list[Any]:
    """Real and generated clips of each scene; some scenes are harder, for everybody and for this one."""
    hard = shared * np.random.default_rng(7).normal(size=scenes) + 0.5 * rng.normal(size=scenes)
    rows = []
    for scene in range(scenes):
        for creator in ("", "Sora", "Veo"):
            right = rng.normal() + hard[scene] < skill
            label = Label.GENERATED if right == bool(creator) else Label.REAL
            rows.append(
                ScoredQuestion(
                    subject=compute_placeholder_clip_id("clip", f"{creator}{scene}"),
                    truth=Generated(creator) if creator else Real(),
                    outcome=RealityVerdict(label=label),
                    source=f"scene {scene}",
                )
            )
    return rows


def _realism(rng: Rng, n: int = 40) -> list[Any]:
    truth = np.random.default_rng(7).integers(1, 6, size=n)
    given = np.clip(np.round(truth + rng.normal(size=n)), 1, 5).astype(int)
    return [
        ScoredQuestion(
            subject=compute_placeholder_clip_id("clip", str(i)),
            truth=Rating(score=int(truth[i]), problem="hands"),
            outcome=RealismVerdict(score=int(given[i]), problem="a hand", adherence=""),
            text_score=float(rng.uniform()),
        )
        for i in range(n)
    ]


def _preference(rng: Rng, n: int = 40) -> list[Any]:
    rows = []
    for i in range(n):
        real, fake = (
            compute_placeholder_clip_id("real", str(i // 2)),
            compute_placeholder_clip_id("fake", str(i)),
        )
        first = i % 3 == 0
        rows.append(
            ScoredQuestion(
                subject=Pair(real, fake) if first else Pair(fake, real),
                truth=Position.FIRST if first else Position.SECOND,
                outcome=PreferenceVerdict(real=list(Position)[int(rng.integers(2))]),
            )
        )
    return rows


def _melts(start_us: int) -> Trace:
    return Trace(
        span=TimeSpan(start_us, 900_000),
        track=(BoxAt(start_us, Box(0.2, 0.2, 0.6, 0.7)),),
        categories=frozenset(),
        explanation="it melts",
    )


def _trace(rng: Rng, n: int = 30) -> list[Any]:
    rows = []
    for i in range(n):
        fake = i % 2 == 0
        label = Label.GENERATED if rng.uniform() < 0.7 else Label.REAL
        x = float(rng.uniform(0, 0.5))
        said = TraceVerdict(
            label=label, box=Box(x, 0.1, x + 0.4, 0.6), start_us=int(x * 1e6), explanation="melts"
        )
        for start_us in (100_000, 600_000) if fake else (None,):
            truth = TraceTruth(
                label=Label.GENERATED if fake else Label.REAL,
                duration_us=1_000_000,
                trace=None if start_us is None else _melts(start_us),
            )
            rows.append(
                ScoredQuestion(
                    subject=compute_placeholder_clip_id("clip", str(i)),
                    truth=truth,
                    outcome=said,
                    text_score=float(rng.integers(3)) / 2 if fake else None,
                )
            )
    return rows


MADE = {"reality": _reality, "realism": _realism, "preference": _preference, "trace": _trace}


@pytest.mark.parametrize("instrument", MADE)
def test_a_figure_without_a_group_is_what_scoring_the_other_rows_gives(
    instrument: str, rng: Rng
) -> None:
    rows = MADE[instrument](rng)
    asked, groups = get_protocol(instrument), JackknifeGroups()
    with jackknife_context(groups):
        card = asked.score(rows, seed=1)
    clusters = [_cluster(row) for row in rows]
    shared = SharedLabelNumbering(groups.scenes)
    for cluster in clusters:
        shared.add(cluster)
    group = dict(zip(clusters, shared.numbers().tolist(), strict=True))
    for left in (0, 3, 11):
        kept = [
            row for row, c in zip(rows, clusters, strict=True) if group[c] % MOST_GROUPS != left
        ]
        again = asked.score(kept, seed=1)
        for metric in card.metrics:
            if isinstance(metric.value, Unmeasured):
                continue
            assert isinstance(metric.value, JackknifeEstimate), metric.name
            fresh = again[metric.name]
            assert isinstance(fresh, Estimate)
            assert metric.value.without.scenes[left] == pytest.approx(fresh.value), metric.name


def _cluster(row: ScoredQuestion[Any, Any]) -> str:
    if isinstance(row.subject, Pair):
        return row.subject.first if row.truth is Position.FIRST else row.subject.second
    return row.cluster.scene


def test_all_that_an_instrument_declares_is_compared(rng: Rng) -> None:
    for instrument, make in MADE.items():
        sides = [_side(name, instrument, make(rng)) for name in ("one", "two")]
        (found,) = compare_reviewers(sides)
        card = get_protocol(instrument).score(sides[0].rows, seed=0)
        plain = {metric.name for metric in card.metrics}
        declared = [f.metric for f in get_protocol(instrument).figures if f.metric in plain]
        assert [d.metric for d in found.differences] == declared
        for difference in found.differences:
            if isinstance(card[difference.metric], Unmeasured):
                assert isinstance(difference.difference, Unmeasured)
                continue
            assert isinstance(difference.difference, Estimate), difference
            assert difference.first == pytest.approx(_value(card[difference.metric]))
            gap = difference.first - difference.second
            assert difference.difference.value == pytest.approx(gap)
            assert difference.p_corrected >= difference.p


def _value(measured: Any) -> float:
    assert isinstance(measured, Estimate)
    return measured.value


def test_swapping_two_reviewers_turns_the_sign_and_keeps_the_chance(rng: Rng) -> None:
    one, two = _side("one", "reality", _reality(rng)), _side("two", "reality", _reality(rng))
    (there,), (back,) = compare_reviewers([one, two]), compare_reviewers([two, one])
    for ours, theirs in zip(there.differences, back.differences, strict=True):
        if isinstance(ours.difference, Unmeasured):
            assert ours.difference == theirs.difference
            continue
        assert isinstance(theirs.difference, Estimate)
        assert ours.difference.low == pytest.approx(-theirs.difference.high)
        assert ours.p == pytest.approx(theirs.p)


def test_clips_that_one_of_two_did_not_judge_are_left_out_of_both_and_counted(rng: Rng) -> None:
    ours, theirs = _reality(rng), _reality(rng)
    ours[0] = replace(ours[0], outcome=Failure(FailureReason.REFUSED, "no"))
    theirs[4] = replace(
        theirs[4], outcome=get_protocol("reality").parse("well ...", AnswerContext())
    )
    (found,) = compare_reviewers(
        [_side("one", "reality", ours), _side("two", "reality", theirs[:-1])]
    )
    assert (found.n_common, found.n_invalid, found.n_unshared) == (117, 2, 1)
    assert found.n_sources == 40
    assert not found.is_complete
    both = [i for i in range(119) if i not in (0, 4)]
    alone = get_protocol("reality").score([ours[i] for i in both], seed=0)
    assert found.differences[0].first == pytest.approx(_value(alone[found.differences[0].metric]))


def test_all_clips_figures_count_what_either_side_left_unreadable_as_wrong(rng: Rng) -> None:
    ours, theirs = _reality(rng, scenes=48), _reality(rng, scenes=48)
    unread = get_protocol("reality").parse("well ...", AnswerContext())
    hard = [i for i, row in enumerate(theirs) if i % 2 == 0 and i < 140]
    ours = [replace(row, outcome=unread) if i in hard else row for i, row in enumerate(ours)]
    sides = [_side("shy", "reality", ours), _side("bold", "reality", theirs)]
    names = ["accuracy", "accuracy-all-clips", "pooled-all-clips: Veo"]
    (found,) = compare_reviewers(sides, metrics=names)
    cards = [get_protocol("reality").score(rows, seed=0) for rows in (ours, theirs)]
    for difference in found.differences[1:]:
        expected = [_value(card[difference.metric]) for card in cards]
        assert [difference.first, difference.second] == pytest.approx(expected)
        assert difference.difference.high < -10
    assert abs(found.differences[0].difference.value) < 10
    assert (found.differences[0].difference.n, found.differences[1].difference.n) == (74, 144)
    assert (found.n_common, found.n_invalid) == (74, 70)


def test_a_better_reviewer_is_found_where_pairing_helps(rng: Rng) -> None:
    same = _reality(rng, scenes=100, skill=0.3)
    better = [
        replace(row, outcome=RealityVerdict(label=Label.GENERATED))
        if isinstance(row.truth, Generated) and i % 10 == 1
        else row
        for i, row in enumerate(same)
    ]
    sides = [_side("better", "reality", better), _side("plain", "reality", same)]
    (found,) = compare_reviewers(sides, metrics=["fake-accuracy"])
    (caught,) = found.differences
    alone = [
        get_protocol("reality").score(rows, seed=0)["fake-accuracy"] for rows in (better, same)
    ]
    assert all(isinstance(one, Estimate) for one in alone)
    assert alone[0].low < alone[1].high
    assert caught.p == caught.p_corrected < 0.01


def test_where_nothing_is_found_the_smallest_difference_that_would_be_is_told(rng: Rng) -> None:
    sides = [_side(name, "reality", _reality(rng)) for name in ("one", "two")]
    (found,) = compare_reviewers(sides, metrics=["accuracy"])
    (alone,) = found.differences
    assert alone.p_corrected > 0.05
    assert abs(alone.difference.value) < alone.difference.high - alone.difference.value
    assert alone.detectable > alone.difference.high - alone.difference.value
    among = (
        compare_reviewers(sides, metrics=["accuracy", "f1", "pooled"]).comparisons[0].differences[0]
    )
    assert among.detectable > alone.detectable
    always = [replace(row, outcome=RealityVerdict(label=Label.REAL)) for row in sides[0].rows]
    (clear,) = compare_reviewers(
        [sides[0], _side("blind", "reality", always)], metrics=["accuracy"]
    )
    assert clear.differences[0].p_corrected < 0.05
    assert clear.differences[0].detectable is None


def test_clips_with_and_without_watermark_are_matched_by_name(rng: Rng) -> None:
    kept = _reality(rng)
    removed = [
        replace(row, subject=compute_placeholder_clip_id("cleaned", row.subject), source="")
        for row in _reality(rng)
    ]
    sides = [
        _side("one", "reality", kept),
        _side("one", "reality", removed, watermark="removed"),
    ]
    (found,) = compare_reviewers(sides)
    assert (found.first, found.second) == ("one · watermark kept", "one · watermark removed")
    assert (found.n_common, found.n_sources) == (120, 40)


def test_one_figure_can_be_chosen_and_one_of_every_creator(rng: Rng) -> None:
    sides = [_side(name, "reality", _reality(rng)) for name in ("one", "two")]
    (found,) = compare_reviewers(sides, metrics=["caught", "balanced"])
    assert [d.metric for d in found.differences] == ["caught: Sora", "caught: Veo", "balanced"]
    with pytest.raises(UnknownNameError, match="fake-accuracy"):
        compare_reviewers(sides, metrics=["fake-acuracy"])


def test_the_correction_counts_every_difference_that_is_shown(rng: Rng) -> None:
    sides = [_side(name, "reality", _reality(rng)) for name in ("one", "two", "three", "four")]
    found = compare_reviewers(sides)
    assert len(found.comparisons) == 6
    tested = [d for comparison in found for d in comparison.differences if d.p is not None]
    assert found.n_tests == len(tested) > 6
    least, told = min(d.p for d in tested), min(d.p_corrected for d in tested)
    assert told == pytest.approx(min(1, least * found.n_tests))


def test_what_cannot_be_compared_is_refused_with_what_to_do(rng: Rng) -> None:
    one = _side("one", "reality", _reality(rng))
    older = replace(
        one, instrument=replace(one.instrument, instrument=Instrument("reality", 1)), reviewer="old"
    )
    elsewhere = replace(
        one,
        rows=[
            replace(row, subject=compute_placeholder_clip_id("other", row.subject))
            for row in one.rows
        ],
    )
    renewed = replace(one, rows=[replace(row, truth=Real()) for row in one.rows])
    for others, why in (
        ([], "Name two runs"),
        ([older], "reality@2, old reality@1.*one protocol"),
        ([_side("two", "realism", _realism(rng))], "realism@2"),
        ([elsewhere], "different clips.*one benchmark"),
        ([renewed], "different ground truths.*one version"),
    ):
        with pytest.raises(InvalidSettingError, match=why):
            compare_reviewers([one, *others])


def _crossed(rng: Rng) -> list[Any]:
    """Seven creators made each of thirty scenes; this reviewer finds some creators easier than others."""
    ease = 0.7 * rng.normal(size=7)
    return [
        ScoredQuestion(
            subject=compute_placeholder_clip_id("clip", f"{maker} {scene}"),
            truth=Generated(f"maker {maker}"),
            outcome=RealityVerdict(label=list(Label)[int(rng.normal() < 0.6 + ease[maker])]),
            source=f"scene {scene}",
            creator=f"maker {maker}",
        )
        for scene in range(30)
        for maker in range(7)
    ]


def _called(seed: int) -> tuple[Difference, float]:
    """What two such reviewers differ by, and the error of that by scene alone."""
    pair = [_crossed(np.random.default_rng([seed, side])) for side in (1, 2)]
    caught = [[row.outcome.label is Label.GENERATED for row in rows] for rows in pair]
    gaps = 100.0 * np.subtract(*np.array(caught, dtype=float)).reshape(30, 7).mean(axis=1)
    sides = [_side("r", "reality", rows) for rows in pair]
    (found,) = compare_reviewers(sides, metrics=["fake-accuracy"])
    assert found.differences[0].difference.value == pytest.approx(gaps.mean())
    return found.differences[0], gaps.std(ddof=1) / np.sqrt(30)


def test_what_reviewers_make_of_other_creators_is_part_of_the_doubt() -> None:
    found, by_scene = _called(1)
    assert found.difference.high - found.difference.value > 2 * 2.045 * by_scene


@pytest.mark.slow
def test_creators_that_one_finds_easier_by_chance_are_no_difference() -> None:
    called = [_called(seed) for seed in range(200)]
    assert np.mean([found.p < 0.05 for found, _ in called]) <= 0.09
    assert np.mean([abs(f.difference.value) > 2.045 * error for f, error in called]) > 0.2


def _rates(tries: int) -> dict[str, float]:
    called: dict[str, list[bool]] = {}
    for seed in range(tries):
        rngs = (np.random.default_rng([seed, side]) for side in (1, 2))
        (found,) = compare_reviewers(
            [_side("r", "reality", _reality(rng, scenes=20)) for rng in rngs]
        )
        for difference in (d for d in found.differences if d.p is not None):
            called.setdefault(difference.metric, []).append(difference.p < 0.05)
    return {metric: sum(told) / tries for metric, told in called.items()}


def test_two_reviewers_of_one_skill_are_seldom_called_different() -> None:
    rates = _rates(60)
    # Of 60 tries at 5 %, 8 or more turn up once in 130 times.
    assert all(rate <= 7 / 60 for rate in rates.values()), rates
    assert sum(rates.values()) > 0


@pytest.mark.slow
def test_two_reviewers_of_one_skill_are_called_different_in_5_of_100_tries() -> None:
    rates = _rates(600)
    assert all(0.02 <= rate <= 0.075 for rate in rates.values()), rates


@pytest.mark.slow
def test_among_six_reviewers_of_one_skill_hardly_ever_any_two_are_called_different() -> None:
    tries, n_false = 100, 0
    for seed in range(tries):
        rngs = (np.random.default_rng([seed, side]) for side in range(6))
        found = compare_reviewers([_side("r", "reality", _reality(rng, scenes=20)) for rng in rngs])
        n_false += any((d.p_corrected or 1) < 0.05 for c in found for d in c.differences)
    assert n_false <= 0.09 * tries


NAMES = [f"{side}-{number}" for number in range(7) for side in ("veo", "real")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Three runs over fourteen clips: one right, one that is often wrong and once refuses, one of `trace`."""
    tmp_path = tmp_path_factory.mktemp("compared")
    creators = {name: "Veo" if name.startswith("veo") else "" for name in NAMES}
    traces = {name: [trace()] if creator else [] for name, creator in creators.items()}
    bench = lay_out(tmp_path / "bench", [entry(n, creators[n], traces=traces[n]) for n in NAMES])
    right = {name: f"<answer>{int(name.startswith('real'))}</answer>" for name in NAMES}
    wrong = dict.fromkeys([f"veo-{number}" for number in range(4)], "<answer>1</answer>")
    refused = {"real-6": {"failure": "refused"}}
    said = {"good": right, "poor": {**right, **wrong, **refused}}
    places = {}
    for name, answers in said.items():
        told = str(record(tmp_path / f"{name}.jsonl", answers))
        run = ask(tmp_path / name, bench, protocol="reality", model="recorded", recorded=told)
        places[name] = run.place.uri
    told = str(record(tmp_path / "told.jsonl", {name: accuse() for name in NAMES}))
    run = ask(tmp_path / "traced", bench, protocol="trace", model="recorded", recorded=told)
    return places | {"traced": run.place.uri}


def test_a_command_tells_the_differences_what_was_left_out_and_ends_so(
    runs: dict[str, str], typed: Type
) -> None:
    said = typed("compare", runs["good"], runs["poor"])
    assert said.status == 1
    assert "recorded:good\trecorded:poor\tfake-accuracy\t100.00\t42.86" in said.out
    assert "corrected for 7 differences (Holm)" in said.err
    assert "auc, tpr-at-fpr-5" in said.err
    assert "13 questions that both answered readably, of 13 clips" in said.err
    assert "1 excluded: one of the two has no readable answer" in said.err
    told = json.loads(typed("compare", runs["good"], runs["poor"], "--json").out)
    (comparison,) = told["comparisons"]
    caught = next(d for d in comparison["differences"] if d["metric"] == "fake-accuracy")
    assert (caught["first"], caught["second"]) == pytest.approx((100, 300 / 7))
    assert caught["difference"]["value"] == pytest.approx(400 / 7)
    assert caught["p"] < 0.05
    assert told["n_tests"] == 7


def test_a_command_compares_only_what_can_be_compared(runs: dict[str, str], typed: Type) -> None:
    for words, why in (
        ([runs["good"]], "Name two runs, or one run with several conditions"),
        ([runs["good"], runs["good"]], "named twice"),
        ([runs["good"], runs["traced"]], "Compare runs of one protocol at one version"),
        ([runs["good"], runs["poor"], "--metric", "balancd"], "balanced"),
    ):
        refused = typed("compare", *words)
        assert refused.status == 2
        assert why in refused.err


def test_one_run_under_two_conditions_is_compared_with_itself(
    start: Callable[..., Any], typed: Type
) -> None:
    from unreel.evaluation.run_job import evaluate

    run = start(condition=[{"sampling": "uniform-2"}, {"sampling": "uniform-4"}])
    evaluate(run)
    said = typed("compare", run.place.uri, "--metric", "answered-real")
    assert said.status == 0
    assert "coin · uniform-2\tcoin · uniform-4\tanswered-real\t" in said.out
    assert "corrected for" in said.err


def test_a_verb_does_what_the_command_does(runs: dict[str, str], typed: Type) -> None:
    import unreel

    found = unreel.compare(runs["good"], unreel.open_run(runs["poor"]), metrics=["balanced"])
    typed_out = typed("compare", runs["good"], runs["poor"], "--metric", "balanced", "--json").out
    (one,), (other,) = found, json.loads(typed_out)["comparisons"]
    assert one.differences[0].p == other["differences"][0]["p"]
    assert "recorded:good less recorded:poor: 13 in common, 1 left out" in str(found)
    assert "<table>" in found._repr_html_()
    with pytest.raises(UnknownNameError):
        unreel.compare(runs["good"], runs["poor"], parser="rough")
