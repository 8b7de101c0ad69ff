"""Training on several devices: Accelerate's configuration file and launch commands."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.local.checkpoint import FamilyName
from unreel.training.recipe import TrainedModelSection, TrainingDevicesSection

FILE = "accelerate.json"
_LAYERS: Mapping[FamilyName, str] = {
    "qwen2.5-vl": "Qwen2_5_VLDecoderLayer,Qwen2_5_VLVisionBlock",
    "qwen3-vl": "Qwen3VLTextDecoderLayer,Qwen3VLVisionBlock",
    "videollama3": "Qwen2DecoderLayer,VideoLlama3VisionEncoderLayer",
}
"""Transformer layer classes at which FSDP splits a model, by model family."""
LAUNCHED = "unreel.cli.main"
"""Module that each process runs."""
_MASTER = "MASTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccelerateLaunchCommands:
    """Accelerate configuration file of a training, and the launch command for each machine."""

    config: Path
    commands: tuple[str, ...]
    """Launch command of each machine."""

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of this interpreter, before those of the user, to launch on this machine."""
        launch = ["-m", "accelerate.commands.launch", "--config_file", str(self.config)]
        return [*launch, "-m", LAUNCHED]


def build_accelerate_config(
    devices: TrainingDevicesSection, model: TrainedModelSection
) -> dict[str, Any]:
    """Return the content of Accelerate's configuration file for the machine of rank 0.

    Raise `InvalidSettingError` if the strategy is `single`, but there are several devices.
    """
    n = devices.count * devices.nodes
    if devices.strategy == "single" and n > 1:
        raise InvalidSettingError(
            "devices.strategy", f"single, and {n} devices are named", "Set it to ddp or fsdp"
        )
    kind = {"single": "NO", "ddp": "MULTI_GPU", "fsdp": "FSDP"}
    values: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": kind[devices.strategy],
        "enable_cpu_affinity": False,
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": "bf16" if model.precision == "bf16" else "no",
        "num_machines": devices.nodes,
        "num_processes": n,
        "rdzv_backend": "static" if devices.nodes == 1 else "c10d",
        "same_network": True,
        "use_cpu": False,
    }
    if devices.strategy == "fsdp":
        values["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_transformer_layer_cls_to_wrap": _LAYERS[model.family],
            "fsdp_reshard_after_forward": True,
            "fsdp_state_dict_type": "FULL_STATE_DICT",
            "fsdp_cpu_ram_efficient_loading": False,
            "fsdp_activation_checkpointing": False,
            "fsdp_offload_params": False,
        }
    return values


def write_accelerate_config(
    devices: TrainingDevicesSection,
    model: TrainedModelSection,
    folder: Path,
    *,
    typed: tuple[str, ...],
) -> AccelerateLaunchCommands:
    """Write Accelerate's configuration file into `folder` and return the launch commands."""
    text = json.dumps(build_accelerate_config(devices, model), indent=1)
    config = OutputDirectory(folder, published=True).write(FILE, text.encode())
    base = ["accelerate", "launch", "--config_file", str(config)]
    launch_arguments = ["-m", LAUNCHED, "train", "run", *typed]
    if devices.nodes == 1:
        return AccelerateLaunchCommands(
            config=config, commands=(shlex.join([*base, *launch_arguments]),)
        )
    port = ["--main_process_ip", _MASTER, "--main_process_port", "29500"]
    machines = (
        [*base, "--machine_rank", str(i), *port, *launch_arguments] for i in range(devices.nodes)
    )
    return AccelerateLaunchCommands(config=config, commands=tuple(map(shlex.join, machines)))
