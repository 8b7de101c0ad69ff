"""A training that commit 5462f705 began is continued at its checkpoint."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the environment for training")

from net.commands import call, read_golden, read_json, unpack
from net.stored_work import TRAIN


@pytest.mark.filterwarnings("default")
def test_a_killed_training_continues_at_its_checkpoint_and_ends_with_the_same_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unpack(tmp_path, "training"))
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
