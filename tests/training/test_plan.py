"""What a training will take, before it starts."""

import dataclasses
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.published.printed_tables import read_published_table
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.training.plan.architecture import find_model_architecture
from unreel.training.plan.device_resources import get_accelerator_device
from unreel.training.plan.estimate import TrainingEstimate, TrainingHardware, estimate_training
from unreel.training.plan.example_strata import build_declared_example_strata
from unreel.training.recipe import (
    TrainRecipe,
    list_shipped_recipes,
    read_train_recipe,
    validate_train_recipe,
)


def _deeptrace() -> list[dict[str, Any]]:
    """The training split of DeepTraceReward, as its tables 1 and 3 count it."""
    splits = {row["split"]: row for row in read_published_table("deeptrace_splits").rows}
    sources = read_published_table("deeptrace_sources").rows
    fakes = sum(int(row["annotations"]) for row in sources if row["origin"] == "generated")
    train = splits["train"]

    def examples(row: Mapping[str, str]) -> int:
        if row["origin"] == "real":
            return int(train["real_videos"])
        return round(int(row["annotations"]) * int(train["fake_annotations"]) / fakes)

    return [
        {
            "examples": examples(row),
            "seconds": float(row["video_seconds"]),
            "width": int(row["width"]),
            "height": int(row["height"]),
        }
        for row in sources
    ]


def _recipe(**changes: Any) -> TrainRecipe:
    values: dict[str, Any] = {
        "name": "dtr",
        "input": "video",
        "model": {
            "name": "Qwen/Qwen2.5-VL-7B-Instruct",
            "family": "qwen2.5-vl",
            "tune": "full",
            "vision": "trained",
        },
        "data": {
            "benchmark": "deeptrace",
            "protocol": "trace",
            "condition": {"sampling": "fps-1-max-20", "prompt": "fine-tuning"},
            "expected": _deeptrace(),
        },
        "optimise": {"batch_size": 2},
        "devices": {"strategy": "fsdp", "count": 8},
    }
    for path, value in changes.items():
        *sections, key = path.split("__")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return validate_train_recipe(values)


def _plan(
    recipe: TrainRecipe, *, gpu: str = "h100", gpus: int = 8, **fleet: Any
) -> TrainingEstimate:
    architecture = find_model_architecture(recipe.model.name, recipe.model.family)
    return estimate_training(
        recipe,
        build_declared_example_strata(recipe),
        architecture,
        TrainingHardware(device=get_accelerator_device(gpu), count=gpus, **fleet),
    )


@pytest.mark.parametrize(
    ("name", "minutes"), [("dtr-qwen2.5-vl-7b", 70), ("dtr-videollama3-7b", 40)]
)
def test_deep_trace_s_trainings_are_planned_within_half_of_their_published_time(
    name: str, minutes: int
) -> None:
    recipe = read_train_recipe(name)
    assert recipe.published is not None
    assert recipe.published.minutes == minutes
    plan = _plan(recipe)
    assert plan.examples == pytest.approx(6114, abs=4)
    assert minutes / 1.5 < plan.hours * 60 < minutes * 1.5
    assert plan.fits


@pytest.mark.parametrize("name", list_shipped_recipes())
def test_every_shipped_recipe_that_counts_its_clips_fits_the_devices_it_names(name: str) -> None:
    recipe = read_train_recipe(name)
    if all(data.expected for data in recipe.data):
        assert _plan(recipe, gpus=recipe.devices.count).fits


def test_twice_the_clips_are_twice_the_hours_and_the_money() -> None:
    once, twice = (
        _plan(
            _recipe(
                data__expected=[{"examples": n, "seconds": 5, "width": 1280, "height": 720}],
                watch__every=10**9,
            ),
            price_usd=Decimal("2.5"),
        )
        for n in (16_000, 32_000)
    )
    assert twice.hours == pytest.approx(2 * once.hours)
    assert twice.steps == 2 * once.steps
    assert once.cost_usd is not None
    assert twice.cost_usd == pytest.approx(2 * once.cost_usd, abs=Decimal("0.02"))


def test_twice_the_devices_take_half_the_hours_for_the_same_money() -> None:
    few, many = (_plan(_recipe(watch__every=10**9), gpus=n, price_usd=Decimal(2)) for n in (8, 16))
    assert few.hours == pytest.approx(2 * many.hours)
    assert few.cost_usd is not None
    assert many.cost_usd is not None
    assert float(few.cost_usd) == pytest.approx(float(many.cost_usd), rel=1e-3)


def test_an_adapter_needs_less_memory_and_time_than_all_weights() -> None:
    full, lora = _plan(_recipe()), _plan(_recipe(model__tune="lora", model__vision="frozen"))
    assert lora.memory.total < full.memory.total
    assert lora.memory.optimiser < full.memory.optimiser / 50
    assert lora.hours < full.hours
    assert lora.trained < full.trained / 100


def test_checkpointing_gives_memory_for_time() -> None:
    saved, kept = (_plan(_recipe(model__gradient_checkpointing=on)) for on in (True, False))
    assert saved.memory.activations < kept.memory.activations / 4
    assert saved.compute_hours == pytest.approx(kept.compute_hours * 8 / 6)


def test_fewer_pixels_are_fewer_tokens_and_hours() -> None:
    condition = {"sampling": "fps-1-max-20", "prompt": "fine-tuning", "max_pixels": 256 * 256}
    small, large = _plan(_recipe(data__condition=condition)), _plan(_recipe())
    assert small.mean.vision_tokens < large.mean.vision_tokens / 6
    assert small.mean.prompt_tokens == large.mean.prompt_tokens
    assert small.hours < large.hours


def test_frames_one_by_one_cost_twice_the_tokens_of_a_video_whose_frames_share_them() -> None:
    frames, video = _plan(_recipe(input="frames")), _plan(_recipe())
    assert frames.mean.frames == video.mean.frames
    assert 1.6 < frames.mean.vision_tokens / video.mean.vision_tokens <= 2
    assert frames.mean.prompt_tokens > video.mean.prompt_tokens


def test_the_tokens_of_a_frame_are_those_of_the_resized_frame() -> None:
    expected = [{"examples": 1, "seconds": 1, "width": 1280, "height": 720}]
    plan = _plan(_recipe(input="frames", data__expected=expected))
    assert plan.mean.largest.seen == (1036, 588)
    assert plan.mean.largest.vision_tokens == 1036 * 588 // 28**2


def test_what_does_not_fit_is_told_with_what_to_change() -> None:
    recipe = _recipe(devices__strategy="single", model__gradient_checkpointing=False)
    plan = _plan(recipe, gpu="rtx4090", gpus=1)
    assert not plan.fits
    assert plan.remedies[0] == "Set model.gradient_checkpointing=true"
    assert any("lora" in remedy for remedy in plan.remedies)
    assert plan.remedies[-1] == f"Take a device with {plan.memory.total:.0f} GiB or more"


def test_following_every_remedy_but_the_last_makes_it_fit() -> None:
    tight = _plan(_recipe(devices__strategy="single", optimise__batch_size=8), gpus=1)
    assert not tight.fits
    condition = {"sampling": "fps-1-max-20", "prompt": "fine-tuning", "max_pixels": 128 * 128}
    eased = _recipe(
        model__tune="lora",
        model__vision="frozen",
        optimise__batch_size=1,
        optimise__accumulate=8,
        data__condition=condition,
    )
    assert _plan(eased, gpus=1).fits


def test_slow_decoding_sets_the_pace_and_more_workers_mend_it() -> None:
    expected = [{"examples": 1000, "seconds": 600, "width": 1920, "height": 1080}]
    slow, quick = (
        _plan(_recipe(data__expected=expected, optimise__workers=n, watch__every=10**9))
        for n in (1, 64)
    )
    assert slow.hours == slow.decode_hours > slow.compute_hours
    assert quick.hours == quick.compute_hours > quick.decode_hours


def test_no_more_is_learned_than_the_steps_that_are_allowed() -> None:
    some, whole = _plan(_recipe(optimise__max_steps=10, watch__every=10**9)), _plan(_recipe())
    assert some.steps == 10
    assert some.flops == pytest.approx(whole.flops * 160 / whole.examples, rel=0.01)


def test_a_weight_counts_as_so_many_more_examples() -> None:
    assert _plan(_recipe(data__weight=2.0)).examples == pytest.approx(2 * 6114, abs=8)


def test_every_assumption_is_said() -> None:
    said = " ".join(_plan(_recipe()).assumptions)
    for word in ("parameters x tokens", "4.5%", "989 TFLOP/s", "70 minutes", "decoding", "memory"):
        assert word in said
    told = " ".join(_plan(_recipe(), utilisation=0.3).assumptions)
    assert "30.0%" in told
    assert "as given" in told


@pytest.mark.parametrize(
    "fleet",
    [
        {"gpus": 0},
        {"gpus": 10**9},
        {"price_usd": Decimal(-1)},
        {"price_usd": Decimal("NaN")},
        {"price_usd": Decimal("Infinity")},
        {"utilisation": 0.0},
        {"utilisation": 1.5},
        {"utilisation": math.nan},
    ],
)
def test_nonsense_about_the_devices_is_refused(fleet: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        _plan(_recipe(), **fleet)


def test_an_unknown_device_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="h100"):
        get_accelerator_device("h1000")
    assert get_accelerator_device("H100") is get_accelerator_device("h100")


def test_a_model_of_unknown_size_is_refused_with_the_sizes_that_are_known() -> None:
    with pytest.raises(InvalidSettingError, match="3B, 7B, 32B, 72B"):
        find_model_architecture("somebody/best-vl", "qwen2.5-vl")


def test_data_that_nobody_counted_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"\[\[data.expected\]\]"):
        _plan(_recipe(data__expected=[]))


def test_a_clip_that_cannot_be_is_refused() -> None:
    endless = [{"examples": 1, "seconds": 1e9, "width": 64, "height": 64}]
    with pytest.raises(InvalidSettingError, match="frames cannot be"):
        _plan(_recipe(data__expected=endless))


@pytest.mark.parametrize(
    ("name", "family", "billions"),
    [
        ("Qwen/Qwen2.5-VL-3B-Instruct", "qwen2.5-vl", 3.75),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl", 8.29),
        ("Qwen/Qwen2.5-VL-72B-Instruct", "qwen2.5-vl", 73.4),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl", 8.77),
        ("DAMO-NLP-SG/VideoLLaMA3-7B", "videollama3", 8.04),
        ("DAMO-NLP-SG/VideoLLaMA3-2B", "videollama3", 1.96),
    ],
)
def test_a_model_is_as_large_as_its_card_says(name: str, family: Any, billions: float) -> None:
    found = find_model_architecture(name, family)
    total = (found.text.parameters + found.vision.parameters) / 1e9
    assert total == pytest.approx(billions, rel=0.02)


def test_a_folder_is_as_large_as_its_config_says(tmp_path: Path) -> None:
    config = """{"text_config": {"hidden_size": 3584, "num_hidden_layers": 28, "intermediate_size": 18944,
      "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064},
      "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "patch_size": 14,
      "fullatt_block_indexes": [7, 15, 23, 31]}, "tie_word_embeddings": false}"""
    (tmp_path / "config.json").write_text(config)
    found = find_model_architecture(str(tmp_path), "qwen2.5-vl")
    known = find_model_architecture("Qwen2.5-VL-7B", "qwen2.5-vl")
    assert dataclasses.replace(found, known_from=known.known_from) == known


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"vision_config": {}, "hidden_size": 1e400}'])
def test_a_damaged_config_is_refused(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(UnreadableSourceError, match=r"config\.json"):
        find_model_architecture(str(tmp_path), "qwen2.5-vl")
