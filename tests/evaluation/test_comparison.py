"""Reviewers side by side on the clips that both judged."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from protocols.drawn_rows import draw_rows
from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Condition, Instrument
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import (
    LocateVerdict,
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.protocols.protocol import AnswerContext, ScoredQuestion, get_protocol
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.stats.clusters import SharedLabelNumbering
from unreel.stats.jackknife_values import (
    MAX_GROUPS,
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
        kept = [row for row, c in zip(rows, clusters, strict=True) if group[c] % MAX_GROUPS != left]
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
    sides = [_side("one", "reality", kept), _side("one", "reality", removed, watermark="removed")]
    (found,) = compare_reviewers(sides)
    assert (found.first, found.second) == ("one · watermark kept", "one · watermark removed")
    assert (found.n_common, found.n_sources) == (120, 40)


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


_GAP: Any = Unparsed(UnparsedReason.MISSING)
UNREADABLE = {
    "reality": RealityVerdict(label=_GAP),
    "realism": RealismVerdict(score=_GAP, problem=_GAP, adherence=_GAP, family=_GAP),
    "preference": PreferenceVerdict(real=_GAP),
    "trace": TraceVerdict(label=_GAP, box=_GAP, start_us=_GAP, explanation=_GAP),
    "locate": LocateVerdict(segments=_GAP),
}


@pytest.mark.parametrize("instrument", UNREADABLE)
def test_unreadable_answers_count_in_a_comparison_as_on_the_scorecard(instrument: str) -> None:
    """Each metric of each protocol, with half of the second reviewer's clips unreadable."""
    protocol = get_protocol(instrument)
    rows = [
        row
        for row in draw_rows(instrument, 60, n_creators=3, n_scenes=20)
        if not isinstance(row.outcome, Failure)
    ]
    subjects = [*dict.fromkeys(row.subject for row in rows)]
    silent = {*subjects[::2]}
    second = [
        replace(row, outcome=UNREADABLE[instrument], text_score=None)
        if row.subject in silent
        else row
        for row in rows
    ]
    cards = [
        {metric.name: metric.value for metric in protocol.score(side, seed=0).metrics}
        for side in (rows, second)
    ]
    names = [
        name
        for name in cards[0]
        if name in cards[1] and protocol.figures.counts(name) != "readable"
    ]
    assert names or instrument == "realism"
    if not names:
        assert instrument == "realism"
        return
    (comparison,) = compare_reviewers(
        [_side("one", instrument, rows), _side("two", instrument, second)], metrics=names
    )
    for difference in comparison.differences:
        for measured, card in ((difference.first, cards[0]), (difference.second, cards[1])):
            expected = card[difference.metric]
            value = expected.value if isinstance(expected, Estimate) else None
            assert measured == pytest.approx(value, abs=1e-9), difference.metric
