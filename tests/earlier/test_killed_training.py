"""A training that commit c84a833 began is continued at its checkpoint."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the environment for training")

from earlier.commands import MADE_BY, call, read_golden, read_json, unpack, unpack_lessons
from earlier.make_training import TRAIN


@pytest.mark.filterwarnings("default")
def test_a_killed_training_continues_at_its_checkpoint_and_ends_with_the_same_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack_lessons(tmp_path)
    monkeypatch.chdir(unpack(tmp_path, f"{MADE_BY}/training.tar.xz"))
    expected = read_golden("training")

    trained = read_json(*TRAIN, "--out", "killed", "--resume")

    assert trained["went_on_from"] == 2
    assert trained["loss"] == pytest.approx(expected["loss"], abs=1e-4)
    same = ("step", "ended", "unshown")
    assert [trained[name] for name in same] == [expected[name] for name in same]
    again = read_json(*TRAIN, "--out", "killed", "--resume")
    assert again["went_on_from"] == trained["step"]
    card = json.loads(call("train", "card", "killed/model", "--json").stdout)
    assert card["data"] == read_golden("card")["data"]
