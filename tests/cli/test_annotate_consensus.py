"""`unreel annotate consensus`, `review` and `quality` as people type them."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")

from campaigns import ANN, BEN, CAMPAIGN, CAT, in_order, record_of, task_of
from unreel.annotation.campaign import VoteAnswer
from unreel.annotation.ledger.connection import open_ledger
from unreel.core.judgement import Label

N_TASKS = 30
REAL, GENERATED = (VoteAnswer(label=label) for label in Label)


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A ledger in which ann and ben agree, cat contradicts every third time; one task is apart, one unseen."""
    found = str(tmp_path / "ledger.db")
    tasks = [task_of(f"c{at:02}", known=REAL if at % 2 else GENERATED) for at in range(N_TASKS + 2)]
    with open_ledger(found) as ledger:
        ledger.enlist([ANN, BEN, CAT])
        ledger.open_campaign(CAMPAIGN)
        ledger.add_tasks("votes", tasks)
        for person in (ANN, BEN, CAT):
            ledger.assign("votes", in_order(person.name, tasks))
        for at, task in enumerate(tasks[:N_TASKS]):
            right, wrong = (REAL, GENERATED) if at % 2 else (GENERATED, REAL)
            ledger.append([record_of(task, "ann", right), record_of(task, "ben", right)])
            ledger.append([record_of(task, "cat", wrong if at % 3 == 0 else right)])
        apart = tasks[N_TASKS]
        ledger.append([record_of(apart, "ann", REAL), record_of(apart, "ben", GENERATED)])
    return found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("c00", "--by", "rea"), "one of --accept"),
        (("c00", "--accept", "--take", "ann", "--by", "rea"), "one of --accept"),
        (("c00", "--accept", "--by", "ann"), "another person"),
        (("c30", "--accept", "--by", "rea"), "--take"),
        (("c31", "--accept", "--by", "rea"), "no judgement"),
        (("c30", "--take", "cat", "--by", "rea"), "ann"),
        (("c0o", "--accept", "--by", "rea"), "Did you mean 'c"),
        (("c00", "--send-back", "--by", "rea"), "--why"),
        (("c00", "--accept", "--by", "Re a"), "lower-case"),
    ],
)
def test_a_review_that_cannot_be_is_refused(
    run, address: str, words: tuple[str, ...], told: str
) -> None:
    done = run("annotate", "review", "votes", *words, "--ledger", address)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
