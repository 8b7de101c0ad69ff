"""A training goes on only as what it was begun as."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unreel.core.errors import UnreadableSourceError
from unreel.training.checkpoints import TrainingCheckpointStore, format_checkpoint_name
from unreel.training.manifest import TrainingManifest, prepare_training_folder
from unreel.training.recipe import TrainRecipe, validate_train_recipe


def _recipe(**optimise: object) -> TrainRecipe:
    return validate_train_recipe(
        {
            "name": "tiny",
            "model": {"name": "base", "family": "qwen2.5-vl"},
            "data": {
                "benchmark": "clips",
                "protocol": "reality",
                "condition": {"prompt": "direct"},
            },
            "optimise": optimise,
        }
    )


def _begun(recipe: TrainRecipe | None = None, **changed: object) -> TrainingManifest:
    given = {"data": "d", "base": "b", "n_devices": 1} | changed
    return TrainingManifest(recipe=(recipe or _recipe()).model_dump(mode="json"), **given)


def _save(folder: Path, step: int) -> None:
    checkpoints = TrainingCheckpointStore(folder)
    (checkpoints.begin(format_checkpoint_name(step)) / "model.safetensors").write_text("weights")
    checkpoints.finish(format_checkpoint_name(step), step=step)


def test_a_training_begins_and_goes_on_from_its_newest_checkpoint(tmp_path: Path) -> None:
    assert prepare_training_folder(_begun(), tmp_path, going="either") is None
    _save(tmp_path, 10)
    found = prepare_training_folder(_begun(), tmp_path, going="either")
    assert found is not None
    assert found.step == 10


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"recipe": _recipe(learning_rate=1e-3)}, "optimise.learning_rate was 1e-05 and is 0.001"),
        ({"data": "other"}, "the examples, their answers or the holdout"),
        ({"base": "other"}, "the model that it starts from has other weights"),
        ({"n_devices": 8}, "the training ran on 1 devices and is to run on 8"),
    ],
)
def test_what_changed_is_named(changed: dict[str, object], told: str, tmp_path: Path) -> None:
    prepare_training_folder(_begun(), tmp_path, going="either")
    _save(tmp_path, 10)
    with pytest.raises(UnreadableSourceError, match="another training was begun there") as refused:
        prepare_training_folder(_begun(**changed), tmp_path, going="either")
    assert told in str(refused.value)
    assert "--fresh" in str(refused.value)
    assert TrainingCheckpointStore(tmp_path).newest() is not None


def test_who_watches_and_who_decodes_may_change(tmp_path: Path) -> None:
    prepare_training_folder(_begun(), tmp_path, going="either")
    _save(tmp_path, 10)
    assert prepare_training_folder(_begun(_recipe(workers=0)), tmp_path, going="either") is not None


def test_beginning_anew_takes_the_old_checkpoints_away(tmp_path: Path) -> None:
    prepare_training_folder(_begun(), tmp_path, going="either")
    _save(tmp_path, 10)
    assert (
        prepare_training_folder(_begun(_recipe(learning_rate=1e-3)), tmp_path, going="fresh")
        is None
    )
    assert TrainingCheckpointStore(tmp_path).newest() is None


@pytest.mark.parametrize("going", ["either", "fresh", "resume"])
def test_a_folder_of_somebody_else_is_left_as_it_is(going: Any, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("precious")
    with pytest.raises(UnreadableSourceError, match="was not written by unreel"):
        prepare_training_folder(_begun(), tmp_path, going=going)
    assert (tmp_path / "model" / "weights").read_text() == "precious"


def test_a_stored_number_of_expected_clips_does_not_prevent_a_resume(tmp_path: Path) -> None:
    stored = _begun()
    (data,) = stored.recipe["data"]
    data["expected"] = [{"examples": 9, "seconds": 5.0}]
    prepare_training_folder(stored, tmp_path, going="either")
    _save(tmp_path, 10)
    found = prepare_training_folder(_begun(), tmp_path, going="resume")
    assert found is not None
    assert found.step == 10


def test_a_stored_threshold_of_rejection_sampling_does_not_prevent_a_resume(tmp_path: Path) -> None:
    stored = _begun()
    recipe = {**stored.recipe, "reward": {"method": "grpo"}}
    before = {**stored.recipe, "reward": {"method": "grpo", "keep_from": 0.5}}
    prepare_training_folder(replace(stored, recipe=before), tmp_path, going="either")
    _save(tmp_path, 10)
    found = prepare_training_folder(replace(stored, recipe=recipe), tmp_path, going="resume")
    assert found is not None
    assert found.step == 10
