"""`unreel eval` and `unreel review` with a model of this machine, as people type them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("lance")

from synthesise import ClipRecipe, synthesise
from unreel.cli.main import unreel
from unreel.core.errors import InvalidSettingError
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    FamilyName,
    ProtocolTrainingCondition,
    write_checkpoint_input_spec,
)

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def checkpoint(
    tiny: Callable[[FamilyName], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "dtr" / "model"
    shutil.copytree(tiny("qwen2.5-vl"), folder)
    way = ConditionSection(sampling="uniform-4", prompt="fine-tuning-no-both", max_pixels=9_408)
    known = ProtocolTrainingCondition(protocol="trace", version=1, condition=way)
    told = CheckpointInputSpec(
        family="qwen2.5-vl", input="video", box_space="model-input", instruments=(known,)
    )
    write_checkpoint_input_spec(told, folder)
    return folder


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    for number, kind in enumerate(("real", "generated/Sora", "generated/Veo")):
        path = folder / kind / f"c{number}.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=10, seed=number)))
    return folder


def typed(*words: object) -> Result:
    return CliRunner().invoke(unreel, [str(word) for word in words])


def test_eval_asks_a_checkpoint_as_it_was_taught(
    checkpoint: Path, clips: Path, tmp_path: Path
) -> None:
    asked = ("eval", clips, "--protocol", "trace", "--model", f"local/{checkpoint}")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("max_tokens = 8\n")
    done = typed(*asked, "--recipe", recipe, "--out", tmp_path / "run", "--json")
    told = json.loads(done.stdout)
    answers = told["outcome"]["answers"]
    # The weights are random: no text at all is an answer too.
    assert answers["done"] + answers["failures"].get("empty-reply", 0) == 3, done.output
    (score,) = told["scores"]
    assert score["condition"]["sampling"] == "uniform-4"
    assert score["condition"]["prompt"] == "fine-tuning-no-both"
    kept = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert kept["reviewer"].startswith("local/dtr@")
    assert kept["recipe"]["show"] == "video"


def test_eval_refuses_what_a_checkpoint_was_not_taught(
    checkpoint: Path, clips: Path, tmp_path: Path
) -> None:
    asked = ("eval", clips, "--protocol", "realism", "--model", f"local/{checkpoint}")
    refused = typed(*asked, "--out", tmp_path / "run").exception
    assert isinstance(refused, InvalidSettingError)
    assert "was not trained on realism@2" in str(refused)


def test_review_asks_a_checkpoint_for_what_it_was_taught(
    checkpoint: Path, clips: Path, tmp_path: Path
) -> None:
    clip = next(clips.rglob("c0.mp4"))
    asked = ("review", clip, "--model", f"local/{checkpoint}", "--out", tmp_path / "seen", "--json")
    done = typed(*asked)
    (opinion,) = json.loads(done.stdout)["clips"][0]["opinions"]
    assert opinion["reviewer"].startswith("local/dtr@")
    assert opinion["reply"]["text"], opinion
