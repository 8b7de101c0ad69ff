"""What would be started for a checkpoint, decided before anything runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from local.stand_in import write_adapter, write_model
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.reviewers.endpoint.model_families import match_model_family
from unreel.reviewers.local.checkpoint import CheckpointInputSpec, write_checkpoint_input_spec
from unreel.reviewers.local.vllm_plan import VllmServerPlan, VllmServerSettings, plan_vllm_server


def plan(
    folder: Path,
    settings: VllmServerSettings = VllmServerSettings(),  # noqa: B008  frozen
    **more: Any,
) -> VllmServerPlan:
    return plan_vllm_server(folder, settings=settings, **more)


def taken(planned: VllmServerPlan, flag: str) -> str:
    return planned.arguments[planned.arguments.index(flag) + 1]


def teach(folder: Path, form: str = "video", **more: Any) -> Path:
    taught = {"family": "qwen2.5-vl", "input": form, "box_space": "model-input", **more}
    write_checkpoint_input_spec(CheckpointInputSpec(**taught), folder)
    return folder


def test_only_this_machine_is_answered_and_nothing_is_fetched_or_run(tmp_path: Path) -> None:
    planned = plan(write_model(tmp_path / "m"))
    assert taken(planned, "--host") == "127.0.0.1"
    assert taken(planned, "--load-format") == "safetensors"
    assert taken(planned, "--allowed-media-domains").endswith(".invalid")
    assert not {"--trust-remote-code", "--allowed-local-media-path"} & {*planned.arguments}
    for variable in ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS"):
        assert planned.environment[variable] == "1"
    assert planned.environment["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] == "0"
    assert planned.environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "0"


def test_nonsense_in_a_config_becomes_no_argument(tmp_path: Path) -> None:
    config = {"dtype": ["--trust-remote-code"], "text_config": {"max_position_embeddings": 10**30}}
    planned = plan(write_model(tmp_path / "m", transformers_version={"a": 1}, **config))
    assert taken(planned, "--dtype") == "auto"
    assert taken(planned, "--max-model-len") == "32768"


@pytest.mark.parametrize(
    ("kind", "family"),
    [("qwen2_5_vl", "qwen2.5-vl"), ("qwen3_vl", "qwen3-vl"), ("video_llama_3", "videollama3")],
)
def test_its_name_tells_the_family_to_whoever_asks(tmp_path: Path, kind: str, family: str) -> None:
    planned = plan(write_model(tmp_path / "Great Model!", kind))
    assert planned.models[0].name.startswith(f"{family}.Great-Model.")
    assert match_model_family(planned.models[0].name).name == family


def test_a_checkpoint_is_served_in_the_form_that_it_was_taught_only(tmp_path: Path) -> None:
    video = plan(teach(write_model(tmp_path / "v")))
    assert video.models[0].forms == ("video",)
    assert json.loads(taken(video, "--limit-mm-per-prompt")) == {"image": 0, "video": 2}
    assert "--trust-request-mm-kwargs" in video.arguments
    frames = plan(teach(write_model(tmp_path / "f"), "frames"))
    assert json.loads(taken(frames, "--limit-mm-per-prompt"))["video"] == 0
    assert "--trust-request-mm-kwargs" not in frames.arguments


@pytest.mark.parametrize(
    ("saved", "forms"),
    [
        ("4.49.0", ("frames", "video")),
        ("5.5.4", ("frames", "video")),
        ("5.6.0", ("frames",)),
        ("5.19.0", ("frames",)),
        ("5.22.1", ("frames",)),
        ("5.23.0.dev0", ("frames", "video")),
    ],
)
def test_a_stranger_whose_positions_may_be_skewed_gets_no_video(
    tmp_path: Path, saved: str, forms: tuple[str, ...]
) -> None:
    planned = plan(write_model(tmp_path / "m", transformers_version=saved))
    assert planned.models[0].forms == forms
    assert bool(planned.remarks) is (forms == ("frames",))
    other = plan(write_model(tmp_path / "o", "qwen3_vl", transformers_version=saved))
    assert other.models[0].forms == ("frames", "video")


def test_an_adapter_is_served_beside_its_base_and_goes_first(tmp_path: Path) -> None:
    base = teach(write_model(tmp_path / "base"), "frames")
    tuned = teach(write_adapter(tmp_path / "tuned", r=12), base=str(base))
    planned = plan(tuned)
    assert planned.base == base
    names = [m.name.rpartition(".")[0] for m in planned.models]
    assert names == ["qwen2.5-vl.tuned", "qwen2.5-vl.base"]
    assert [m.forms for m in planned.models] == [("video",), ("frames",)]
    assert taken(planned, "--max-lora-rank") == "16"
    assert json.loads(taken(planned, "--lora-modules")) == {
        "name": planned.models[0].name,
        "path": str(tuned),
    }
    assert "--enable-tower-connector-lora" not in planned.arguments


def test_an_adapter_that_changes_how_frames_are_seen_is_served_whole(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base")
    sees = write_adapter(tmp_path / "sees", tensor="visual.blocks.0.attn.qkv")
    planned = plan(base, adapters={"sees": sees, "blind": write_adapter(tmp_path / "blind")})
    assert "--enable-tower-connector-lora" in planned.arguments
    assert len(planned.models) == 3


def test_an_adapter_finds_its_base_beside_itself(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base")
    tuned = teach(write_adapter(tmp_path / "tuned"), base="../base")
    assert plan(tuned).base == base


def test_the_time_marks_of_videollama3_are_mended_and_its_folder_is_not(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", "video_llama_3")
    before = (folder / "processor_config.json").read_bytes()
    [(name, text)] = plan(folder).changed.items()
    assert json.loads(text)["video_processor"]["do_sample_frames"] is True
    assert (folder / name).read_bytes() == before
    assert taken(plan(folder), "--model-impl") == "transformers"
    assert not plan(write_model(tmp_path / "q")).changed


def test_boxes_are_told_where_the_processor_is_not_the_familys(tmp_path: Path) -> None:
    strange = plan(teach(write_model(tmp_path / "m")))
    assert strange.models[0].box_spaces == {"video": "resized 3136-50176"}
    permille = plan(teach(write_model(tmp_path / "p"), box_space="permille"))
    assert permille.models[0].box_spaces == {"video": "permille"}
    usual = teach(write_model(tmp_path / "u"))
    half = {"size": {"shortest_edge": 128 * 28**2, "longest_edge": 768 * 28**2}}
    (usual / "processor_config.json").write_text(json.dumps({"video_processor": half}))
    assert plan(usual).models[0].box_spaces == {}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: (m / "config.json").unlink(), "config.json"),
        (lambda m: (m / "config.json").write_text("[]"), "config.json"),
        (lambda m: (m / "config.json").write_text('{"model_type": "llama"}'), "'llama'"),
        (lambda m: (m / "config.json").write_text('{"model_type": ["qwen3_vl"]}'), "qwen3_vl"),
        (lambda m: (m / "model.safetensors").rename(m / "pytorch_model.bin"), "can contain code"),
        (lambda m: (m / "processor_config.json").unlink(), "processor"),
        (lambda m: (m / "processor_config.json").write_text('{"image_processor": 7}'), "processor"),
        (
            lambda m: (m / "processor_config.json").write_text('{"size": {"shortest_edge": "9"}}'),
            "size limits",
        ),
    ],
)
def test_a_folder_that_is_no_model_is_refused_with_words(
    tmp_path: Path, spoil: Any, words: str
) -> None:
    folder = write_model(tmp_path / "m")
    spoil(folder)
    with pytest.raises(UnreadableSourceError, match=words.replace("[", r"\[")):
        plan(folder)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"r": 600}, "rank 600"),
        ({"r": "8"}, "rank of '8'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"use_dora": True}, "use_dora"),
    ],
)
def test_an_adapter_that_vllm_cannot_serve_is_refused(
    tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    base = write_model(tmp_path / "base")
    with pytest.raises((InvalidSettingError, UnreadableSourceError), match=words):
        plan(base, adapters={"a": write_adapter(tmp_path / "a", **config)})


def test_parts_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base")
    other = teach(write_adapter(tmp_path / "other"), family="qwen3-vl")
    with pytest.raises(InvalidSettingError, match="belongs on qwen3-vl"):
        plan(base, adapters={"a": other})
    tuned = write_adapter(tmp_path / "tuned")
    own = teach(write_adapter(tmp_path / "own"), base=str(base))
    with pytest.raises(InvalidSettingError, match="one name for two"):
        plan(own, adapters={"own": own})
    with pytest.raises(InvalidSettingError, match="may contain only letters"):
        plan(base, adapters={"a b": tuned})
    with pytest.raises(InvalidSettingError, match="another family"):
        plan(base, adapters={"qwen3-vl": tuned})
    with pytest.raises(UnreadableSourceError, match="does not name its base"):
        plan(tuned)
    with pytest.raises(UnreadableSourceError, match="no such folder"):
        plan(teach(write_adapter(tmp_path / "far"), base="Qwen/Qwen2.5-VL-7B-Instruct"))
    with pytest.raises(InvalidSettingError, match="128000 tokens at most"):
        plan(base, VllmServerSettings(max_length=200_000))
    (tuned / "adapter_model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(UnreadableSourceError, match="no tensors"):
        plan(base, adapters={"a": tuned})


def test_an_adapter_trained_with_another_processor_is_refused(tmp_path: Path) -> None:
    base, tuned = write_model(tmp_path / "base"), write_adapter(tmp_path / "tuned")
    (tuned / "processor_config.json").write_bytes((base / "processor_config.json").read_bytes())
    (tuned / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(InvalidSettingError, match="another processor"):
        plan(base, adapters={"a": tuned})
    (base / "chat_template.jinja").write_text("{{ messages }}")
    assert plan(base, adapters={"a": tuned}).models
    half = {"size": {"shortest_edge": 1, "longest_edge": 2}}
    (tuned / "processor_config.json").write_text(json.dumps({"image_processor": half}))
    with pytest.raises(InvalidSettingError, match="another processor"):
        plan(base, adapters={"a": tuned})
