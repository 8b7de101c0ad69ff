"""Several devices are described in Accelerate's own words."""

from pathlib import Path

import pytest

from unreel.training.accelerate_config import build_accelerate_config, write_accelerate_config
from unreel.training.recipe import TrainedModelSection, TrainingDevicesSection

MODEL = TrainedModelSection(name="base", family="qwen2.5-vl")


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        (TrainingDevicesSection(), "NO"),
        (TrainingDevicesSection(strategy="ddp", count=8), "MULTI_GPU"),
        (TrainingDevicesSection(strategy="fsdp", count=8, nodes=2), "FSDP"),
    ],
)
def test_accelerate_reads_the_file(
    devices: TrainingDevicesSection, kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    from accelerate.commands.config.config_args import load_config_from_file

    launch = write_accelerate_config(
        devices, MODEL, tmp_path, typed=("recipe.toml", "--out", "a b")
    )
    read = load_config_from_file(str(launch.config))
    assert read.distributed_type.value == kind
    assert read.num_processes == devices.count * devices.nodes
    assert read.mixed_precision == "bf16"
    assert len(launch.commands) == devices.nodes
    assert launch.commands[-1].endswith("-m unreel.cli.main train run recipe.toml --out 'a b'")


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl", "videollama3"])
def test_the_layers_that_a_model_is_split_at_exist(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    from importlib import import_module

    split = build_accelerate_config(
        TrainingDevicesSection(strategy="fsdp", count=2),
        TrainedModelSection(name="base", family=family),
    )["fsdp_config"]["fsdp_transformer_layer_cls_to_wrap"]
    modules = [
        import_module(f"{transformers.__name__}.models.{name}.modeling_{name}")
        for name in ("qwen2", "qwen2_5_vl", "qwen3_vl", "video_llama_3")
    ]
    for layer in split.split(","):
        assert any(hasattr(module, layer) for module in modules), layer
