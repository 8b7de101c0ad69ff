"""`local/FOLDER` as a reviewer's name: what it means before any weights are loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.core.settings import EnvironmentSettings
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import EvalRecipe, validate_eval_recipe
from unreel.evaluation.review import (
    build_review_questions,
    build_reviewer_factories,
    get_trained_protocols,
)
from unreel.evaluation.run_job import ReviewStage
from unreel.protocols.protocol import get_protocol
from unreel.recipes.validation import validate_recipe_sections
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.servers import list_model_endpoints
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    Form,
    ProtocolTrainingCondition,
    write_checkpoint_input_spec,
)

LESSONS = ConditionSection(
    sampling="fps-2-max-20", prompt="fine-tuning-no-explanation", max_pixels=50_176, marks="on"
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., str]:
    """The name of a checkpoint that was taught `trace` in that form; its weights are none."""

    def written(form: Form = "video", *, ours: bool = True) -> str:
        folder = tmp_path / "dtr"
        folder.mkdir(exist_ok=True)
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
        if ours:
            known = ProtocolTrainingCondition(protocol="trace", version=1, condition=LESSONS)
            told = CheckpointInputSpec(
                family="qwen2.5-vl", input=form, box_space="model-input", instruments=(known,)
            )
            write_checkpoint_input_spec(told, folder)
        return f"local/{folder}"

    return written


def section(model: str, **keys: Any) -> ReviewerSection:
    return validate_recipe_sections(ReviewerSection, {"model": model, **keys})


def recipe(model: str, **keys: Any) -> EvalRecipe:
    return validate_eval_recipe({"benchmark": "b", "protocol": "trace", "model": model, **keys})


def test_a_folder_is_no_provider_and_nobody_is_contacted(checkpoint: Callable[..., str]) -> None:
    model = checkpoint()
    assert not section(model).is_served
    assert list_model_endpoints([model, "local/x@http://127.0.0.1:1/v1"], key_hosts="") == ()
    assert section("local/x@http://127.0.0.1:1/v1").price is None


def test_a_checkpoint_is_asked_in_the_form_that_it_was_taught(
    checkpoint: Callable[..., str],
) -> None:
    assert section(checkpoint("video")).show == "video"
    assert section(checkpoint("frames")).show == "frames"
    assert section(checkpoint(ours=False)).show == "frames"


def test_its_own_condition_holds_where_nobody_names_one(checkpoint: Callable[..., str]) -> None:
    (condition,) = recipe(checkpoint()).conditions
    assert condition == LESSONS.resolved(get_protocol("trace")).as_condition()
    (named,) = recipe(checkpoint(), condition=[{"sampling": "uniform-4"}]).conditions
    assert (named.sampling, named.prompt) == ("uniform-4", "fine-tuning-no-explanation")


def test_a_stored_recipe_is_read_without_the_checkpoint(checkpoint: Callable[..., str]) -> None:
    model = checkpoint()
    stored = json.loads(json.dumps(recipe(model).stored()))
    folder = Path(model.removeprefix("local/"))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    again = validate_eval_recipe(stored)
    assert again.reviewer.show == "video"
    assert again.conditions == (LESSONS.resolved(get_protocol("trace")).as_condition(),)
    assert "gpus" not in stored


def test_what_it_was_not_taught_is_refused(checkpoint: Callable[..., str]) -> None:
    model = checkpoint()
    with pytest.raises(InvalidSettingError, match=r"was not trained on realism@2.*trace@1"):
        section(model).require_trained_for(["trace", "realism"])
    section(checkpoint()).require_trained_for(["trace"])
    Path(model.removeprefix("local/"), "unreel.json").unlink()
    section(model).require_trained_for(["realism"])


def test_a_review_asks_a_checkpoint_what_and_how_it_was_taught(
    checkpoint: Callable[..., str],
) -> None:
    model = checkpoint()
    assert get_trained_protocols(["coin", model]) == ("trace",)
    assert get_trained_protocols(["coin"]) == ()
    inquiry = build_review_questions(("trace",), {"max_pixels": "1000"}, models=[model])
    assert inquiry.condition.sampling == "fps-2-max-20"
    assert inquiry.condition.max_pixels == 1000
    with pytest.raises(InvalidSettingError, match="was not trained on realism"):
        build_reviewer_factories(
            [model], build_review_questions(("realism",), {}), settings=EnvironmentSettings()
        )


def test_two_checkpoints_with_ways_of_their_own_are_not_asked_together(
    checkpoint: Callable[..., str], tmp_path: Path
) -> None:
    one = checkpoint()
    other = Path(one.removeprefix("local/")).rename(tmp_path / "other")
    told = json.loads((other / "unreel.json").read_text())
    told["instruments"][0]["condition"]["sampling"] = "uniform-4"
    (other / "unreel.json").write_text(json.dumps(told))
    with pytest.raises(InvalidSettingError, match="trained in 2 ways"):
        build_review_questions(("trace",), {}, models=[checkpoint(), f"local/{other}"])


def test_thinking_is_refused_as_for_its_family_behind_a_server(
    checkpoint: Callable[..., str],
) -> None:
    with pytest.raises(InvalidSettingError, match="no way to switch thinking on"):
        recipe(checkpoint(), condition=[{"thinking": "on"}])


class TestOpening:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")
        pytest.importorskip("peft")

    def test_the_name_tells_weights_and_manner(self, checkpoint: Callable[..., str]) -> None:
        model = checkpoint()
        usual = section(model).opener(key_hosts="").name
        assert usual.startswith("local/dtr@")
        assert section(model, max_tokens=64).opener(key_hosts="").name == f"{usual}?max_tokens=64"

    def test_its_stage_asks_a_cluster_for_a_card(self, checkpoint: Callable[..., str]) -> None:
        asked = section(checkpoint(), gpus=1)
        access = ClipAccessSettings(settings=EnvironmentSettings())
        stage = ReviewStage(asked.opener(key_hosts=""), access, in_flight=4)
        assert (stage.resources.gpus, stage.resources.in_flight) == (1.0, 4)
        coin = ReviewStage(section("coin").opener(key_hosts=""), access, in_flight=4)
        assert coin.resources.gpus == 0
