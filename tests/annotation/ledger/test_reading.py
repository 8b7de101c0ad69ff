"""Whose word stands is worked out from the ledger, and nothing in it is written over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns import ANN, BEN, CAMPAIGN, in_order, record_of, task_of, tasks_of
from unreel.annotation.campaign import QuarantineReason, SubmissionQuarantine, VoteAnswer
from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign_records
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.core.judgement import Label

REAL, FAKE = VoteAnswer(label=Label.REAL), VoteAnswer(label=Label.GENERATED)
BROKEN = SubmissionQuarantine(QuarantineReason.MISSING, "no answer")
TASKS = tasks_of(2)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(str(tmp_path / "ledger.db")) as opened:
        opened.enlist([ANN, BEN])
        opened.open_campaign(CAMPAIGN)
        opened.add_tasks("votes", TASKS)
        opened.assign("votes", in_order("ann", TASKS))
        yield opened


def _said(ledger: Ledger) -> dict[tuple[str, str], Label]:
    found = iter_valid_judgements(read_campaign_records(ledger, "votes"))
    return {(each.annotator, each.task.names[0]): each.value.label for each in found}


def test_the_newest_word_stands_whichever_arrives_last(ledger: Ledger) -> None:
    newer = record_of(TASKS[0], outcome=FAKE, raw="2", submitted_us=2)
    older = record_of(TASKS[0], outcome=REAL, raw="1", submitted_us=1)
    ledger.append([newer, older])
    assert _said(ledger) == {("ann", "c00000"): Label.GENERATED}
    assert read_campaign_records(ledger, "votes").n_records == 2


def test_of_words_of_the_same_instant_the_last_that_arrived_stands(ledger: Ledger) -> None:
    ledger.append(
        record_of(TASKS[0], outcome=value, raw=str(value.label)) for value in (REAL, FAKE)
    )
    assert _said(ledger) == {("ann", "c00000"): Label.GENERATED}


def test_a_broken_newest_word_leaves_nothing_standing_of_theirs(ledger: Ledger) -> None:
    ledger.append([record_of(TASKS[0], submitted_us=1)])
    broken = record_of(TASKS[0], outcome=BROKEN, raw="2", submitted_us=2)
    ledger.append([broken])
    assert _said(ledger) == {}
    assert read_campaign_records(ledger, "votes").quarantined == (broken,)
    ledger.append([record_of(TASKS[0], outcome=FAKE, raw="3", submitted_us=3)])
    assert _said(ledger) == {("ann", "c00000"): Label.GENERATED}
    assert read_campaign_records(ledger, "votes").quarantined == ()


@pytest.mark.parametrize(
    "reason",
    [QuarantineReason.NOT_THEIRS, QuarantineReason.NOT_ASSIGNED, QuarantineReason.TAMPERED],
)
def test_nobody_unsays_what_another_said(ledger: Ledger, reason: QuarantineReason) -> None:
    forged = record_of(
        TASKS[0], outcome=SubmissionQuarantine(reason, "ben's"), raw="2", submitted_us=9
    )
    ledger.append([record_of(TASKS[0], submitted_us=1), forged])
    assert _said(ledger) == {("ann", "c00000"): Label.REAL}
    assert read_campaign_records(ledger, "votes").quarantined == (forged,)


def test_a_word_on_no_task_of_the_campaign_is_shown_and_never_counted(ledger: Ledger) -> None:
    ledger.append([record_of(task_of("elsewhere"))])
    read = read_campaign_records(ledger, "votes")
    assert list(iter_valid_judgements(read)) == []
    assert [each.outcome.reason for each in read.quarantined] == [QuarantineReason.NOT_ASSIGNED]


def test_the_excluded_do_not_count_until_they_are_included_again(ledger: Ledger) -> None:
    ledger.append([record_of(TASKS[0]), record_of(TASKS[0], "ben", FAKE)])
    ledger.notice("votes", "exclusion", "ben", "lead", "always the same answer", 2)
    assert _said(ledger) == {("ann", "c00000"): Label.REAL}
    excluded = read_campaign_records(ledger, "votes").excluded
    assert {name: notice.said for name, notice in excluded.items()} == {
        "ben": "always the same answer"
    }
    # By order of arrival: clocks of several machines differ.
    ledger.notice("votes", "inclusion", "ben", "lead", "it was his keyboard", 1)
    assert len(_said(ledger)) == 2
