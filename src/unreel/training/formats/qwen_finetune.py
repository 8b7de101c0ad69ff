"""Export to qwen-vl-finetune (Qwen's own scripts): JSON rows, dataset entries and a shell script."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from unreel.reviewers.endpoint.model_families import FrameResizeRule
from unreel.training.formats.contract import TRAIN, Shape, TrainerConversation, TrainerExportJob
from unreel.training.formats.shared_settings import (
    build_shared_trainer_arguments,
    format_json_document,
    format_shell_flags,
    get_token_side_pixels,
)

_LEAST_TOKENS: Final = 4
_LEAST_FRAMES: Final = 2
_CONFIG: Final = '''"""Entries for `data_dict` in qwenvl/data/__init__.py: paste them there, or run this file's `add`."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
DATA = {{
{entries}
}}


def add(data_dict: dict) -> None:
    """Name the data of this folder in the trainer's table."""
    data_dict.update(DATA)
'''
_ENTRY: Final = '    "unreel_{part}": {{"annotation_path": str(_HERE / "{part}.json"), "data_path": str(_HERE)}},'
_SCRIPT: Final = """#!/bin/sh
# Run it in qwen-vl-finetune, with the entries of data_config.py in qwenvl/data/__init__.py.
set -e
torchrun --nproc_per_node {devices} qwenvl/train/train_qwen.py \\
    {flags}
"""


class _QwenFinetuneFormat:
    name = "qwen-vl-finetune"
    known_from = "QwenLM/Qwen3-VL at 23d3cce"
    families: Final = {"qwen2.5-vl": "qwen2.5vl", "qwen3-vl": "qwen3vl"}
    shapes: Final[Sequence[Shape]] = ("pictures", "file")

    def seen(self, order: TrainerExportJob, width: int, height: int) -> tuple[int, int]:
        unit = get_token_side_pixels(order.recipe.model.family)
        low = _LEAST_TOKENS * unit**2
        rule = FrameResizeRule(
            multiple=unit, min_pixels=low, max_pixels=max(low, order.most_pixels)
        )
        return rule.size(width, height)

    def sampling(self, order: TrainerExportJob) -> str:
        if order.pace is None:
            return order.condition.sampling
        fps, limit = order.pace.fps, order.pace.at_most
        return (
            f"transformers' video processor: seconds x {fps} frames, made even, at least "
            f"{_LEAST_FRAMES} and at most {limit}"
        )

    def differences(self, order: TrainerExportJob) -> Sequence[str]:
        differences = [
            (
                "a row that cannot be read is tried again and then replaced by the next one, reported "
                "only on stdout: count its messages"
            ),
            "blanks at the ends of texts around media are taken away",
        ]
        if order.shape == "file":
            differences += [
                (
                    f"its frames are not those of {order.condition.sampling}: an even number, by the processor "
                    'of the transformers that it runs with. Only input="frames" gives it ours'
                ),
                (
                    "it computes timestamps from the configured rate even if the maximum number of frames was reached, so that "
                    f"a clip longer than {_compute_max_clip_seconds(order):g} s is dated too short"
                ),
                (
                    "a clip with a longer side than 1024 comes there in its own size, bounded by its area "
                    "alone; here it is shown at 1024. Set data.condition.max_pixels to make both alike"
                ),
            ]
        return differences

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        # Its documentation writes `images` for several; its code reads only `image`.
        return conversation.by_speaker()

    def files(
        self, order: TrainerExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        written = {f"{name}.json": format_json_document(list(part)) for name, part in rows.items()}
        entries = "\n".join(_ENTRY.format(part=part) for part in rows)
        script = _SCRIPT.format(
            devices=order.recipe.devices.count,
            flags=format_shell_flags(self._settings(order, longest)),
        )
        return written | {
            "data_config.py": _CONFIG.format(entries=entries),
            "train.sh": script,
        }

    def command(self, order: TrainerExportJob) -> str:  # noqa: ARG002  the contract's signature
        return "sh train.sh"

    def _settings(self, order: TrainerExportJob, longest: int) -> dict[str, Any]:
        model, recipe = order.recipe.model, order.recipe
        unit = get_token_side_pixels(model.family)
        settings: dict[str, Any] = {
            "model_name_or_path": str(order.model_folder or model.name),
            "tune_mm_llm": model.tune == "full",
            "tune_mm_vision": model.vision == "trained",
            "tune_mm_mlp": model.vision == "trained",
            "lora_enable": model.tune == "lora",
            "dataset_use": f"unreel_{TRAIN}",
            "model_max_length": longest,
            "max_pixels": order.most_pixels,
            "min_pixels": _LEAST_TOKENS * unit**2,
            "gradient_checkpointing": model.gradient_checkpointing,
        }
        if model.tune == "lora":
            settings |= {
                "lora_r": model.lora_rank,
                "lora_alpha": model.lora_alpha,
                "lora_dropout": model.lora_dropout,
            }
        if order.pace is not None:
            settings |= {
                "video_fps": float(order.pace.fps),
                "video_min_frames": _LEAST_FRAMES,
                "video_max_frames": order.pace.at_most,
                "video_max_pixels": order.most_pixels,
                "video_min_pixels": _LEAST_TOKENS * unit**2,
            }
        return settings | build_shared_trainer_arguments(recipe)


def _compute_max_clip_seconds(order: TrainerExportJob) -> float:
    return float(order.pace.at_most / order.pace.fps) if order.pace else 0.0


FORMAT: Final = _QwenFinetuneFormat()
