"""A model of this machine plays a season, and is asked only what is new when a creator joins."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("lance")

from arena.seasons import Stadium, write_benchmark, write_clips
from unreel.arena.answers.season_answers import read_season_answers
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.local.input_format import (
    CheckpointInputSpec,
    FamilyName,
    ProtocolTrainingCondition,
    write_checkpoint_input_spec,
)

pytestmark = pytest.mark.filterwarnings("default")
N_SCENES = 2


@pytest.fixture
def checkpoint(tiny: Callable[[FamilyName], Path], tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(tiny("qwen2.5-vl"), folder)
    way = ConditionSection(sampling="uniform-2", prompt="fine-tuning-no-both", max_pixels=9_408)
    known = ProtocolTrainingCondition(protocol="trace", version=1, condition=way)
    told = CheckpointInputSpec(
        family="qwen2.5-vl", input="video", box_space="model-input", instruments=(known,)
    )
    write_checkpoint_input_spec(told, folder)
    return folder


def test_a_tiny_local_model_plays_beside_the_floors(checkpoint: Path, tmp_path: Path) -> None:
    write_benchmark(tmp_path / "bench", n_scenes=N_SCENES)
    write_clips(tmp_path / "wan", n_scenes=N_SCENES)
    stadium = Stadium(
        tmp_path,
        creators=[{"name": "Sora", "kind": "frozen"}],
        reviewers=[
            {"model": f"local/{checkpoint.name}", "title": "Tiny", "max_tokens": 8},
            {"model": "coin"},
        ],
        head={"protocol": "trace", "floors": False},
    )
    first = stadium.play()
    assert [turn.done for turn in first.reviewers] == [2 * N_SCENES] * 2
    stadium.creators.append({"name": "Wan", "kind": "folder", "folder": "wan"})
    second = stadium.play()
    assert [turn.done for turn in second.reviewers] == [N_SCENES] * 2
    play = read_season_answers(stadium.folder)
    assert play.reviewers == ("Tiny", "coin")
    # Each asks as it was taught, or as the instrument's makers did: one condition of the season.
    heard = {each.title: each.conditions["main"] for each in stadium.folder.entrants().reviewers}
    assert heard["Tiny"].startswith("sampling=uniform-2 ")
    assert not heard["coin"].startswith("sampling=uniform-2 ")
    standings = rank_season_entrants(play, seed=0, resamples=100)
    assert {each.name for each in standings.reviewers} == {"Tiny", "coin"}
