"""`unreel annotate consensus`, `review` and `quality` as people type them."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")

from campaigns import ANN, BEN, CAMPAIGN, CAT, in_order, record_of, task_of
from unreel.annotation.judgements import VoteAnswer
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


def test_what_is_settled_and_what_is_open_is_told(run, address: str, tmp_path: Path) -> None:
    out = tmp_path / "consensus.json"
    done = run("annotate", "consensus", "votes", "--ledger", address, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "30 of 31 judged tasks settled, 10 of them with dissent; 1 not judged yet" in done.stderr
    assert "open: 1 no-majority" in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0] == ["task", "clip", "state", "answer", "method", "support", "dissent"]
    assert len(lines) == 32
    kept = json.loads(out.read_text(encoding="utf-8"))
    assert (kept["n_settled"], kept["n_tasks"], len(kept["tasks"])) == (30, 32, 31)
    done = run("annotate", "consensus", "votes", "--ledger", address, "--open", "--json")
    (left,) = json.loads(done.stdout)["tasks"]
    assert (left["clip"], left["outcome"]["why"]) == ("c30", "no-majority")


def test_knobs_change_what_is_settled(run, address: str) -> None:
    typed = ("annotate", "consensus", "votes", "--ledger", address, "--json")
    told = json.loads(run(*typed, "--quorum", "3", "--min-overlap", "3").stdout)
    assert told["n_settled"] == 20
    told = json.loads(run(*typed, "--method", "dawid-skene").stdout)
    assert set(told["weights"]) == {"ann", "ben", "cat"}
    assert told["weights"]["ann"] > told["weights"]["cat"]
    done = run(*typed, "--reviews", "1")
    assert done.returncode == 1
    assert json.loads(done.stdout)["n_settled"] == 0


def test_a_review_is_kept_and_counts(run, address: str) -> None:
    def review(*words: str) -> object:
        done = run("annotate", "review", "votes", *words, "--ledger", address, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["state"]

    assert review("c00", "--accept", "--by", "rea", "--reviews", "2") == "open"
    assert review("c00", "--accept", "--by", "rob", "--reviews", "2") == "settled"
    assert review("c01", "--send-back", "--by", "rea", "--why", "watch the hands") == "open"
    assert review("c30", "--take", "ben", "--by", "rea") == "settled"
    done = run("annotate", "consensus", "votes", "--ledger", address, "--json")
    told = {row["clip"]: row for row in json.loads(done.stdout)["tasks"]}
    assert told["c01"]["outcome"]["detail"] == "by rea: watch the hands"
    assert told["c30"]["outcome"]["value"]["label"] == "generated"
    with open_ledger(address) as ledger:
        assert len(ledger.notices("votes", "review")) == 4


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


def test_quality_tells_who_answers_well(run, address: str) -> None:
    done = run("annotate", "quality", "votes", "--ledger", address)
    assert done.returncode == 0, done.stderr
    lines = {line.split("\t")[0]: line.split("\t") for line in done.stdout.splitlines()}
    assert lines["ann"][1] == "31"
    assert lines["cat"][2].startswith("0.67 [")
    for words in (
        "alpha-nominal",
        "fleiss-kappa",
        "does not meet VideoRealBench's rule",
        "bias by",
    ):
        assert words in done.stderr
    told = json.loads(run("annotate", "quality", "votes", "--ledger", address, "--json").stdout)
    assert told["quality"]["people"]["cat"]["qualified"] is False
    assert told["quality"]["people"]["ann"]["qualified"] is True
