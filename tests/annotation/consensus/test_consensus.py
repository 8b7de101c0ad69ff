"""What holds for a consensus of any kind."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opinions import UnstoredOpinion, rated, rated_values, said, task, traced_values
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnyValue,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.consensus.consensus import compute_consensus, get_trace_sort_key
from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    ConsensusMethod,
    ConsensusRule,
    NoConsensusReason,
    OpenTask,
    SettledTask,
    TaskSettlementMethod,
)
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.judgement import Label
from unreel.core.verdict import Position
from unreel.stats.row_sample import IntArray

KINDS: dict[AnnotationInterface, st.SearchStrategy[AnyValue]] = {
    AnnotationInterface.SCREENING: st.builds(ScreeningAnswer, keep=st.booleans()),
    AnnotationInterface.TRACE: traced_values(),
    AnnotationInterface.LOCATE: traced_values(),
    AnnotationInterface.REALISM: rated_values(),
    AnnotationInterface.PREFERENCE: st.builds(PreferenceAnswer, better=st.sampled_from(Position)),
    AnnotationInterface.REALITY: st.builds(VoteAnswer, label=st.sampled_from(Label)),
    AnnotationInterface.PASS_FAIL: st.builds(PassFailAnswer, passed=st.booleans()),
}
INTERFACES = pytest.mark.parametrize("interface", AnnotationInterface)


def _opinions(values: Sequence[AnyValue], name: str = "a") -> list[UnstoredOpinion]:
    return said({f"p{place}": value for place, value in enumerate(values)}, task(name))


@INTERFACES
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_order_of_judgements_never_matters(
    interface: AnnotationInterface, data: st.DataObject
) -> None:
    values = st.lists(KINDS[interface], min_size=1, max_size=5)
    opinions = _opinions(data.draw(values), "a") + _opinions(data.draw(values), "b")
    rule = ConsensusRule(method=data.draw(st.sampled_from(ConsensusMethod)))
    shuffled = data.draw(st.permutations(opinions))
    assert compute_consensus(shuffled, rule, interface=interface) == compute_consensus(
        opinions, rule, interface=interface
    )


@INTERFACES
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_consensus_of_copies_is_the_copy(
    interface: AnnotationInterface, data: st.DataObject
) -> None:
    value = data.draw(KINDS[interface])
    n = data.draw(st.integers(2, 5))
    (found,) = compute_consensus(
        _opinions([value] * n), ConsensusRule(), interface=interface
    ).tasks.values()
    assert isinstance(found, SettledTask)
    assert not found.dissent
    if isinstance(value, TraceAnswer):
        assert isinstance(found.value, TraceAnswer)
        assert sorted(found.value.traces, key=get_trace_sort_key) == sorted(
            value.traces, key=get_trace_sort_key
        )
        assert found.value.label == value.label
    else:
        assert found.value == value


def _is_told(value: AnyValue) -> bool:
    """Words are added where the rest wrote none, as they take nothing away."""
    return not isinstance(value, RatingAnswer) or value.rating is None or bool(value.rating.problem)


@INTERFACES
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_lone_spammer_never_changes_a_unanimous_rest(
    interface: AnnotationInterface, data: st.DataObject
) -> None:
    value, spam = data.draw(KINDS[interface].filter(_is_told)), data.draw(KINDS[interface])
    n = data.draw(st.integers(2, 5))
    (alone,) = compute_consensus(
        _opinions([value] * n), ConsensusRule(), interface=interface
    ).tasks.values()
    (found,) = compute_consensus(
        _opinions([*[value] * n, spam]), ConsensusRule(), interface=interface
    ).tasks.values()
    assert isinstance(alone, SettledTask)
    assert isinstance(found, SettledTask)
    assert found.value == alone.value


def test_a_tie_of_votes_is_left_open_with_everybodys_answer() -> None:
    values = [VoteAnswer(label=Label.REAL), VoteAnswer(label=Label.GENERATED)]
    (found,) = compute_consensus(
        _opinions(values), ConsensusRule(), interface=AnnotationInterface.REALITY
    ).tasks.values()
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.TIE
    assert dict(found.judgements) == {"p0": values[0], "p1": values[1]}


def test_a_majority_below_the_quorum_is_left_open() -> None:
    values = [PassFailAnswer(passed=True)] * 2 + [PassFailAnswer(passed=False)]
    (found,) = compute_consensus(
        _opinions(values), ConsensusRule(quorum=3), interface=AnnotationInterface.PASS_FAIL
    ).tasks.values()
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.NO_QUORUM


def test_dawid_skene_believes_the_one_who_is_otherwise_right() -> None:
    """Two who answer at random outvote one who never errs, unless their answers are weighed."""
    good, poor = ["g1", "g2", "g3"], ["s1", "s2"]
    opinions = []
    for number in range(60):
        truth = PassFailAnswer(passed=number % 2 == 0)
        opinions += said(dict.fromkeys(good, truth), task(f"easy {number}"))
        # Right half the time, whatever the truth is, and together.
        guess = PassFailAnswer(passed=number % 4 < 2)
        opinions += said(
            {"g1": truth, "g2": truth, **dict.fromkeys(poor, guess)}, task(f"{number}")
        )
    last = task("last")
    opinions += said(
        {"g1": PassFailAnswer(passed=True), **dict.fromkeys(poor, PassFailAnswer(passed=False))},
        last,
    )
    weighed = compute_consensus(
        opinions,
        ConsensusRule(method=ConsensusMethod.DAWID_SKENE),
        interface=AnnotationInterface.PASS_FAIL,
    )
    counted = compute_consensus(opinions, ConsensusRule(), interface=AnnotationInterface.PASS_FAIL)
    found, other = weighed.tasks[last.id], counted.tasks[last.id]
    assert isinstance(found, SettledTask)
    assert isinstance(other, SettledTask)
    assert (found.value, found.method) == (
        PassFailAnswer(passed=True),
        TaskSettlementMethod.DAWID_SKENE,
    )
    assert found.p_right is not None
    assert found.p_right > 0.9
    assert other.value == PassFailAnswer(passed=False)
    assert weighed.weights["g1"] > 0.9
    assert weighed.weights["s1"] < 0.6


def test_dawid_skene_leaves_open_what_it_is_not_sure_of() -> None:
    values = [VoteAnswer(label=Label.REAL)] * 2 + [VoteAnswer(label=Label.GENERATED)]
    rule = ConsensusRule(method=ConsensusMethod.DAWID_SKENE, sure=0.9)
    (found,) = compute_consensus(
        _opinions(values), rule, interface=AnnotationInterface.REALITY
    ).tasks.values()
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.UNSURE


def _campaign(answers: Sequence[Sequence[int]]) -> tuple[CampaignConsensus, CampaignConsensus]:
    """Weighed and counted: answers by person, then by task; 1 is `generated`."""
    labels = (VoteAnswer(label=Label.REAL), VoteAnswer(label=Label.GENERATED))
    opinions = [
        one
        for number, line in enumerate(zip(*answers, strict=True))
        for one in said(
            {f"p{who}": labels[each] for who, each in enumerate(line)}, task(f"{number:03}")
        )
    ]
    rule = ConsensusRule(quorum=1, method=ConsensusMethod.DAWID_SKENE)
    weighed = compute_consensus(opinions, rule, interface=AnnotationInterface.REALITY)
    return weighed, compute_consensus(
        opinions, ConsensusRule(quorum=1), interface=AnnotationInterface.REALITY
    )


def _answers(rng: np.random.Generator, truth: IntArray, right: float) -> list[int]:
    answers: list[int] = np.where(rng.random(len(truth)) < right, truth, 1 - truth).tolist()
    return answers


def test_a_pair_that_shares_its_answers_is_found_and_counts_once() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=40)
    honest = [_answers(rng, truth, 0.8) for _ in range(3)]
    shared = _answers(rng, truth, 0.6)
    weighed, _ = _campaign([*honest, shared, shared])
    (note,) = [note for note in weighed.notes if "one voice" in note]
    assert note.startswith("p3 and p4 gave the same answer to 40 of 40 tasks")


def test_two_judgements_of_one_person_on_one_task_are_refused() -> None:
    twice = [*_opinions([rated(1)]), *_opinions([rated(2)])]
    with pytest.raises(InvalidValueError, match="twice"):
        compute_consensus(twice, ConsensusRule(), interface=AnnotationInterface.REALISM)


@pytest.mark.parametrize(
    ("name", "value"), [("quorum", 0), ("min_overlap", -1), ("same_fault", 0.0), ("sure", 1.0)]
)
def test_a_knob_that_cannot_be_turned_so_far_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidSettingError, match=name.replace("_", "-")):
        ConsensusRule(**{name: value})  # type: ignore[arg-type]
