"""What every ledger promises, on SQLite as on PostgreSQL."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from campaigns import ANN, BEN, CAMPAIGN, CAT, append_some, in_order, record_of, task_of, tasks_of
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    Annotator,
    PrefillStudyArm,
    QuarantineReason,
    RatingAnswer,
    SubmissionQuarantine,
    TaskAssignment,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.ledger.ledger import Ledger
from unreel.core.box import Box
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
)
from unreel.core.judgement import ErrorFamily, Label, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

TRACED = TraceAnswer(
    traces=(
        Trace(
            span=TimeSpan(33_367, 1_000_000),
            track=(BoxAt(33_367, Box(0.1, 0.2, 0.3, 0.4)),),
            categories=frozenset({Category.OBJECT_MERGING, Category.OTHER}),
            explanation="two hands\0become one \ud800 é 手",
        ),
    ),
    label=Label.GENERATED,
)
RATED = RatingAnswer(
    rating=Rating(score=2, problem="p", adherence="a", family=ErrorFamily.HUMAN_STATES)
)


@pytest.mark.parametrize(
    "person", [Annotator("ann", "other@example.org"), Annotator("dan", "ANN@example.org")]
)
def test_one_login_is_one_person(ledger: Ledger, person: Annotator) -> None:
    with pytest.raises(InvalidSettingError, match="One name has one address"):
        ledger.enlist([person])
    assert ledger.annotators() == [ANN, BEN, CAT]


def test_other_settings_under_the_same_name_are_refused_by_name(ledger: Ledger) -> None:
    other = replace(CAMPAIGN, overlap=5, interface=AnnotationInterface.TRACE)
    with pytest.raises(InvalidSettingError, match=r"interface is reality.*overlap is 3, not 5"):
        ledger.open_campaign(other)
    assert ledger.campaign("votes") == CAMPAIGN


def test_changed_guidelines_and_screens_are_revisions_beside_the_old(ledger: Ledger) -> None:
    second = replace(CAMPAIGN, guidelines="Look at the feet.")
    third = replace(second, interface_version="v2")
    for each in (second, third, third, CAMPAIGN):
        ledger.open_campaign(each)
    assert ledger.revisions("votes") == [CAMPAIGN, second, third, CAMPAIGN]
    assert ledger.campaigns() == [CAMPAIGN]


def test_an_unknown_campaign_is_told_with_the_nearest(ledger: Ledger) -> None:
    for ask in (ledger.campaign, ledger.tasks, ledger.records, ledger.assignments, ledger.notices):
        with pytest.raises(UnknownNameError, match="Did you mean 'votes'"):
            ask("vote")
    with pytest.raises(UnknownNameError, match="Did you mean 'votes'"):
        ledger.append([record_of(task_of("a"), campaign="vote")])


def test_tasks_come_back_as_they_were_and_in_order(ledger: Ledger) -> None:
    given = [task_of("b", known=TRACED, prefill=RATED), task_of("a", group="g"), task_of("a", "b")]
    assert ledger.add_tasks("votes", given) == 3
    assert ledger.add_tasks("votes", [*given, task_of("c")]) == 1
    assert list(ledger.tasks("votes")) == [*given, task_of("c")]


def test_assignments_come_back_by_annotator_and_place(ledger: Ledger) -> None:
    tasks = tasks_of(3)
    ledger.add_tasks("votes", tasks)
    ann, ben = in_order("ann", tasks), in_order("ben", tasks)
    ben[0] = replace(ben[0], arm=PrefillStudyArm.BLIND, swapped=True)
    assert ledger.assign("votes", [*reversed(ben), *ann]) == 6
    assert ledger.assign("votes", [*ann, *ben]) == 0
    assert list(ledger.assignments("votes")) == [*ann, *ben]
    assert list(ledger.assignments("votes", annotator="ben")) == ben


@pytest.mark.parametrize("wrong", [{"task": "none"}, {"annotator": "nobody"}, {"position": 0}])
def test_an_assignment_to_nobody_of_nothing_or_to_a_taken_place_is_refused(
    ledger: Ledger, wrong: dict[str, object]
) -> None:
    tasks = tasks_of(3)
    ledger.add_tasks("votes", tasks)
    ledger.assign("votes", in_order("ann", tasks[:1]))
    right = TaskAssignment(annotator="ann", task=tasks[1].id, batch=1, position=1)
    with pytest.raises(InvalidValueError, match="give each place once"):
        ledger.assign("votes", [right, replace(right, **({"task": tasks[2].id} | wrong))])
    assert len(list(ledger.assignments("votes"))) == 1


def test_records_come_back_as_they_were_and_in_order(ledger: Ledger) -> None:
    outcomes = [TRACED, RATED, RatingAnswer(rating=None), VoteAnswer(label=Label.GENERATED)]
    outcomes.append(SubmissionQuarantine(QuarantineReason.MALFORMED, "no\0text \ud800"))
    given = [
        record_of(task_of(f"c{n}"), outcome=outcome, lead_us=None if n else 2**40)
        for n, outcome in enumerate(outcomes)
    ]
    assert ledger.append(reversed(given)) == len(given)
    kept = list(ledger.records("votes"))
    assert [record for _, record in kept] == given[::-1]
    assert list(ledger.records("votes", after=kept[1][0])) == kept[2:]


def test_what_is_pulled_twice_is_kept_once(ledger: Ledger) -> None:
    given = [record_of(task) for task in tasks_of(2500)]
    assert ledger.append(given) == 2500
    assert ledger.append(given) == 0
    assert ledger.append([*given[:10], *given[:10], record_of(task_of("x"))]) == 1
    assert len(list(ledger.records("votes"))) == 2501
    edited = record_of(task_of("x"), raw='{"result": [1]}')
    assert ledger.append([edited]) == 1


def test_a_broken_iterable_leaves_nothing_behind(ledger: Ledger) -> None:
    def broken() -> Iterator[AnnotationRecord]:
        yield from (record_of(task) for task in tasks_of(1500))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.append(broken())
    assert list(ledger.records("votes")) == []


def test_a_stranger_cannot_keep_others_records_out_by_a_name_that_no_database_takes(
    ledger: Ledger,
) -> None:
    strange = replace(record_of(task_of("a"), "b\0b"), task="\ud800\0", origin="x")
    assert ledger.append([strange, record_of(task_of("b"))]) == 2
    assert ledger.append([strange]) == 0
    kept = [(record.annotator, record.task) for _, record in ledger.records("votes")]
    assert kept == [("b?b", "??"), ("ann", task_of("b").id)]


@pytest.mark.parametrize("seed", [2**63, -(2**70)])
def test_a_number_that_no_database_takes_is_refused_in_words(ledger: Ledger, seed: int) -> None:
    with pytest.raises(InvalidValueError, match="64 bits"):
        ledger.open_campaign(replace(CAMPAIGN, name="other", seed=seed))
    assert ledger.campaigns() == [CAMPAIGN]


def test_a_row_that_a_later_release_wrote_is_refused_with_what_to_do(ledger: Ledger) -> None:
    ledger.append([record_of(task_of("a"))])
    with ledger._engine.begin() as connection:
        later = "replace(replace(outcome, 'voted', 'dreamt'), 'real', 'vague')"
        columns = (
            "campaign, annotator, task, guidelines_version, interface_version, submitted_us, raw"
        )
        connection.execute(
            text(
                f"INSERT INTO ledger_annotations (key, origin, outcome, {columns}) "
                f"SELECT 'k', 'o', {later}, {columns} FROM ledger_annotations"
            )
        )
    reading = ledger.records("votes")
    assert next(reading)[1] == record_of(task_of("a"))
    with pytest.raises(UnreadableSourceError, match="Install the newest unreel"):
        next(reading)


def test_notices_stand_beside_each_other(ledger: Ledger) -> None:
    ledger.notice("votes", "exclusion", "ann", "lead", "too quick", 5)
    ledger.notice("votes", "exclusion", "ann", "lead", "too quick", 5)
    ledger.notice("votes", "inclusion", "ann", "lead", "it was the clock", 6)
    assert [(each.kind, each.subject, each.at_us) for each in ledger.notices("votes")] == [
        ("exclusion", "ann", 5),
        ("inclusion", "ann", 6),
    ]
    assert [each.said for each in ledger.notices("votes", "inclusion")] == ["it was the clock"]
    with pytest.raises(InvalidValueError, match="NUL"):
        ledger.notice("votes", "exclusion", "ann", "lead", "a\0b", 5)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_annotations SET raw = 'x'",
        "DELETE FROM ledger_annotations",
        "UPDATE ledger_notices SET said = 'x'",
        "DELETE FROM ledger_notices",
        "UPDATE ledger_revisions SET guidelines = 'x'",
        "DELETE FROM ledger_revisions",
        "TRUNCATE ledger_annotations",
    ],
)
def test_what_was_said_can_be_neither_changed_nor_taken_away(
    ledger: Ledger, statement: str
) -> None:
    ledger.append([record_of(task_of("a"))])
    ledger.notice("votes", "review", "a", "lead", "fine", 1)
    with pytest.raises(DBAPIError), ledger._engine.begin() as connection:
        connection.execute(text(statement))
    assert [record for _, record in ledger.records("votes")] == [record_of(task_of("a"))]
    assert ledger.campaign("votes") == CAMPAIGN


def test_a_reader_goes_on_while_others_write(ledger: Ledger) -> None:
    ledger.append(record_of(task) for task in tasks_of(3000))
    seen = 0
    for _, record in ledger.records("votes"):
        seen += 1
        if seen % 1000 == 1:
            ledger.append([record_of(task_of(f"new{seen}"))])
            ledger.remember("votes", "cursor", "ann", record.origin)
    assert seen == 3000
    assert len(list(ledger.records("votes"))) == 3003


def test_writers_at_the_same_time_lose_and_double_nothing(ledger: Ledger, address: str) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_some, args=(address, who)) for who in ("ann", "ben")]
    for writer in writers:
        writer.start()
    seen: list[tuple[int, str]] = []
    while any(writer.is_alive() for writer in writers):
        seen += _behind(ledger, seen)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    seen += _behind(ledger, seen)
    kept = _behind(ledger, [])
    assert len({key for _, key in kept}) == len(kept) == 600
    assert seen == kept, "who followed by number missed none"


def _behind(ledger: Ledger, seen: list[tuple[int, str]]) -> list[tuple[int, str]]:
    after = seen[-1][0] if seen else 0
    return [(number, record.key) for number, record in ledger.records("votes", after=after)]
