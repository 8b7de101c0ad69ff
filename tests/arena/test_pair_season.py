"""A preference season is ranked by who is taken for real."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from arena.seasons import Stadium, write_benchmark
from unreel.arena.boards.leaderboard_metrics import REAL_CLIPS
from unreel.arena.boards.preference_ranking import rank_entrants_by_pair_answers
from unreel.arena.boards.ranking import read_pair_answers
from unreel.arena.run.job import forecast_season
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate

N_SCENES = 8


def _said(root: Path) -> None:
    """Veo fools half of the time, Sora once; both orders are on record, whichever is shown."""
    lines = []
    for number in range(N_SCENES):
        for maker, fools in (("Veo", number % 2 == 0), ("Sora", number == 0)):
            names = [f"real-{number}", f"{maker}-{number}"]
            for shown in (names, names[::-1]):
                taken = names[1] if fools else names[0]
                lines.append({"name": " | ".join(shown), "text": str(1 + shown.index(taken))})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "said.jsonl").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def stadium(tmp_path_factory: pytest.TempPathFactory) -> Stadium:
    root = tmp_path_factory.mktemp("pairs")
    write_benchmark(root / "bench", n_scenes=N_SCENES)
    _said(root)
    stadium = Stadium(
        root,
        creators=[{"name": "Sora", "kind": "frozen"}, {"name": "Veo", "kind": "frozen"}],
        reviewers=[{"model": "recorded", "recorded": "said.jsonl", "title": "Ann"}],
        head={"protocol": "preference", "floors": False},
    )
    stadium.play()
    return stadium


def test_pairs_are_read_as_they_were_shown(stadium: Stadium) -> None:
    pairs = read_pair_answers(stadium.folder, "main")
    assert pairs.creators == ("Sora", "Veo")
    assert len(pairs.took) == 2 * N_SCENES
    assert set(pairs.took.tolist()) == {0, 1}
    assert ((pairs.first == -1) | (pairs.second == -1)).all()
    with pytest.raises(UnknownNameError, match="condition"):
        read_pair_answers(stadium.folder, "nowhere")


def test_questions_about_pairs_that_have_an_answer_are_not_foreseen(stadium: Stadium) -> None:
    (ann,) = forecast_season(stadium.job()).reviewers
    assert (ann.n_done, ann.n_due) == (2 * N_SCENES, 0)


def test_who_fools_more_often_ranks_higher(stadium: Stadium) -> None:
    pytest.importorskip("evalica", reason="needs the extra eval: pip install 'unreel[eval]'")
    pairs = read_pair_answers(stadium.folder, "main")
    found = rank_entrants_by_pair_answers(pairs, seed=0)
    taken = {one.name: one.figures["taken-for-real"] for one in found.creators}
    assert isinstance(taken["Veo"], Estimate)
    assert isinstance(taken["Sora"], Estimate)
    assert taken["Veo"].value == 50
    assert taken["Sora"].value == 12.5
    assert {one.name for one in found.creators} == {"Sora", "Veo", REAL_CLIPS}


def test_the_command_ranks_a_preference_season(stadium: Stadium) -> None:
    pytest.importorskip("evalica", reason="needs the extra eval: pip install 'unreel[eval]'")
    code = "from unreel.cli.main import main; main()"
    typed = [sys.executable, "-c", code, "arena", "rank", stadium.root / stadium.out, "--json"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    (told,) = json.loads(done.stdout)["preferences"]
    assert {one["name"] for one in told["creators"]} == {"Sora", "Veo", REAL_CLIPS}
