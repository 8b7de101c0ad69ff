"""People play beside models: each by what they saw, all by what most of them say."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.plays import lineup, play
from arena.seasons import Stadium, write_benchmark
from campaigns import CAMPAIGN, in_order, record_of, task_of
from unreel.annotation.campaign import Annotator, VoteAnswer
from unreel.annotation.ledger.connection import open_ledger
from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    SILENT,
    SeasonAnswerTable,
)
from unreel.arena.answers.season_answers import MAJORITY, PERSON, HumanClipVote, add_human_reviewers
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label

SHOWN = lineup(("sora", "veo"), n_scenes=6)
MODELS = play(SHOWN, {"coin": 0.0, "zeta": 2.0})


def _said(found: SeasonAnswerTable, name: str) -> dict[str, int]:
    who = found.reviewers.index(name)
    return {
        found.clips.names[clip]: int(said)
        for reviewer, clip, said in zip(found.reviewer, found.clip, found.answer_codes, strict=True)
        if reviewer == who
    }


@given(
    st.lists(
        st.builds(
            HumanClipVote,
            st.sampled_from([*SHOWN.names, "elsewhere"]),
            st.sampled_from("abc"),
            st.sampled_from(Label),
        )
    )
)
def test_people_are_added_and_what_models_said_stays(ballots: list[HumanClipVote]) -> None:
    found = add_human_reviewers(MODELS, ballots)
    assert list(found.reviewers) == sorted(found.reviewers)
    for name in MODELS.reviewers:
        assert _said(found, name) == _said(MODELS, name)
    assert found.clips is MODELS.clips
    first: dict[tuple[str, str], Label] = {}
    for each in ballots:
        first.setdefault((each.voter, each.clip), each.label)
    seen = {pair: label for pair, label in first.items() if pair[1] in SHOWN.names}
    people = {name for name in found.reviewers if name.startswith(PERSON)}
    assert people == {f"{PERSON}{voter}" for voter, _ in seen}
    if not seen:
        assert found is MODELS
        return
    tally = Counter((clip, label) for (_, clip), label in seen.items())
    for clip, said in _said(found, MAJORITY).items():
        real, made = tally[clip, Label.REAL], tally[clip, Label.GENERATED]
        assert said == (
            SILENT if real == made else ANSWERED_GENERATED if made > real else ANSWERED_REAL
        )


def test_somebody_who_saw_a_part_is_shown_so_and_ranks_nobody_else_anew() -> None:
    right = [
        HumanClipVote(name, "ann", Label.REAL) for name in SHOWN.names if name.endswith("real")
    ]
    before = rank_season_entrants(MODELS, seed=0, resamples=200)
    after = rank_season_entrants(add_human_reviewers(MODELS, right), seed=0, resamples=200)
    found = {each.name: each for each in after.reviewers}
    assert found[MAJORITY].lacks
    assert found[MAJORITY].rank is None
    assert found["person: ann"].kind == "floor"
    order = [each.name for each in before.reviewers]
    assert [each.name for each in after.reviewers if each.name in order] == order
    for each in before.reviewers:
        assert found[each.name].figures["accuracy"] == each.figures["accuracy"]
    caught = [
        [(c.name, c.rank, c.figures["fakeness"]) for c in b.creators] for b in (before, after)
    ]
    assert caught[0] == caught[1]


def test_a_model_that_goes_by_a_persons_name_is_refused() -> None:
    taken = play(SHOWN, {"person: ann": 1.0})
    with pytest.raises(InvalidValueError, match="another title"):
        add_human_reviewers(taken, [HumanClipVote(SHOWN.names[0], "ann", Label.REAL)])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Stadium:
    root = tmp_path_factory.mktemp("people")
    write_benchmark(root / "bench", n_scenes=2)
    stadium = Stadium(
        root,
        creators=[{"name": "Sora", "kind": "frozen"}],
        reviewers=[{"model": "coin"}],
        head={"floors": False},
    )
    stadium.play()
    return stadium


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    code = "from unreel.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def _run(*words: str) -> Any:
    run = _command(*words, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def _reviewers(stadium: Stadium) -> set[str]:
    told = _run("arena", "rank", str(stadium.folder.path), "--resamples", "100")
    return {each["name"] for each in told["standings"][0]["reviewers"]}


def test_votes_of_a_file_play_in_the_season(played: Stadium, tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    lines = ["voter,label,name", "ann,real,real-0", "bob,fake,Sora-1", "bob,real,no-such-clip"]
    file.write_text("\n".join(lines) + "\n")
    told = _run("arena", "people", str(played.folder.path), "--votes", str(file))
    assert (told["n_people"], told["n_votes"], told["n_clips"]) == (2, 2, 2)
    assert {"person: ann", "person: bob", "people: majority"} <= _reviewers(played)


@pytest.mark.slow
def test_votes_of_a_campaign_play_under_aliases(played: Stadium, tmp_path: Path) -> None:
    tasks = [task_of("real-0"), task_of("Sora-0"), task_of("elsewhere")]
    address = str(tmp_path / "ledger.db")
    with open_ledger(address) as ledger:
        ledger.enlist([Annotator("ann", "ann@example.org")])
        ledger.open_campaign(CAMPAIGN)
        ledger.add_tasks(CAMPAIGN.name, tasks)
        ledger.assign(CAMPAIGN.name, in_order("ann", tasks))
        ledger.append(record_of(t, outcome=VoteAnswer(label=Label.GENERATED)) for t in tasks)
    asked = ("arena", "people", str(played.folder.path), "--campaign", CAMPAIGN.name)
    told = _run(*asked, "--ledger", address)
    assert (told["n_people"], told["n_votes"], told["n_elsewhere"]) == (1, 2, 1)
    shown = _reviewers(played)
    assert "person: annotator-1" in shown
    assert "person: ann" not in shown
    _run(*asked, "--ledger", address, "--named")
    assert "person: ann" in _reviewers(played)


def test_a_season_without_votes_says_what_to_do(played: Stadium) -> None:
    run = _command("arena", "people", str(played.folder.path))
    assert run.returncode == 2
    assert "folder `set`" in run.stderr
