"""Figures of parts of a run, and whether what is told comes true."""

from unreel.core.box import Box
from unreel.core.clip import ClipId, Generated, Real
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import RealityVerdict, TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.calibration import measure_label_calibration
from unreel.protocols.group_metrics import (
    UNCATEGORISED,
    compute_group_scorecards,
    get_trace_categories,
)
from unreel.protocols.protocol import ScoredQuestion, get_protocol
from unreel.protocols.trace.ground_truth import TraceTruth

GAP = Unparsed(UnparsedReason.MISSING)
LOST = Failure(FailureReason.SERVER_ERROR, "500")


def accused(
    clip: str, *categories: Category, said: Label
) -> ScoredQuestion[TraceTruth, TraceVerdict]:
    trace = Trace(
        span=TimeSpan(0, 1000),
        track=(BoxAt(0, Box(0, 0, 0.5, 0.5)),),
        categories=frozenset(categories),
        explanation="why",
    )
    return ScoredQuestion(
        subject=ClipId(clip),
        truth=TraceTruth(label=Label.GENERATED, duration_us=1000, trace=trace),
        outcome=TraceVerdict(label=said, box=GAP, start_us=GAP, explanation=GAP),
    )


def test_a_trace_of_two_kinds_counts_in_both_and_one_without_a_kind_apart() -> None:
    rows = [
        accused("a", Category.OBJECT_MERGING, Category.OTHER, said=Label.GENERATED),
        accused("b", Category.OTHER, said=Label.REAL),
        accused("c", said=Label.GENERATED),
    ]
    cards = compute_group_scorecards(
        get_protocol("trace"), rows, groups_of=get_trace_categories, seed=0
    )
    caught = {name: card["fake-accuracy"] for name, card in cards.items()}
    assert list(caught) == ["object-merging", "other", UNCATEGORISED]
    values = {name: (e.value, e.n) for name, e in caught.items() if isinstance(e, Estimate)}
    assert values == {"object-merging": (100, 1), "other": (50, 2), UNCATEGORISED: (100, 1)}


def test_labels_are_calibrated_as_certainties_and_failures_left_out() -> None:
    def row(clip: str, truth: object, outcome: object) -> ScoredQuestion[object, object]:
        return ScoredQuestion(subject=ClipId(clip), truth=truth, outcome=outcome)

    generated, real = (RealityVerdict(label=label) for label in (Label.GENERATED, Label.REAL))
    rows = [
        row("a", Generated("Sora"), generated),
        row("b", Real(), generated),
        row("c", Real(), real),
        row("d", Generated("Sora"), RealityVerdict(label=GAP)),
        row("e", Generated("Sora"), LOST),
    ]
    bins = {each.p_mean: each.generated for each in measure_label_calibration(rows, seed=0).bins}
    assert {told: (share.value, share.n) for told, share in bins.items()} == {
        0.0: (0.0, 1),
        1.0: (0.5, 2),
    }


def judged(clip: int, difficulty: str, said: Label) -> ScoredQuestion[object, RealityVerdict]:
    truth = Real() if clip % 2 else Generated("Sora")
    outcome = RealityVerdict(label=said)
    return ScoredQuestion(
        subject=ClipId(f"{clip}"), truth=truth, outcome=outcome, difficulty=difficulty
    )


def test_a_part_that_the_benchmark_names_is_scored_as_if_it_were_alone() -> None:
    hard = [judged(i, "hard", Label.REAL) for i in range(10)]
    easy = [judged(i, "easy", Label.REAL if i % 2 else Label.GENERATED) for i in range(10, 20)]
    unsaid = [judged(i, "", Label.REAL) for i in range(20, 30)]
    reality = get_protocol("reality")
    card = reality.score([*hard, *easy, *unsaid], seed=3)
    for name, rows in (("easy", easy), ("hard", hard)):
        alone = reality.score(rows, seed=3)
        for figure in reality.figures.by_part:
            assert card[f"{figure}: difficulty={name}"] == alone[figure]
    parts = {metric.name.partition(": ")[2] for metric in card.metrics}
    assert {part for part in parts if "=" in part} == {"difficulty=easy", "difficulty=hard"}
