"""Export to VideoLLaMA3's own trainer: rows as JSON lines, and a shell script for `train.py`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from unreel.core.errors import InvalidSettingError
from unreel.training.formats.contract import TRAIN, Shape, TrainerConversation, TrainerExportJob
from unreel.training.formats.shared_settings import (
    build_shared_trainer_arguments,
    format_json_lines,
    format_shell_flags,
)

_SCRIPT: Final = """#!/bin/sh
# Run it in the folder of VideoLLaMA3, with this folder as its only argument.
set -e
torchrun --nproc_per_node {devices} videollama3/train.py \\
    --data_path "$1/{part}.jsonl" --data_folder "$1" \\
    {flags}
"""


class _VideoLlama3Format:
    name = "videollama3"
    known_from = "VideoLLaMA3's train.py at c707283"
    families: Final = {"videollama3": "videollama3_qwen2"}
    shapes: Final[Sequence[Shape]] = ("pictures", "file")

    def seen(self, order: TrainerExportJob, width: int, height: int) -> tuple[int, int]:  # noqa: ARG002  the contract's
        return width, height  # its boxes are in pixels of the input frame

    def sampling(self, order: TrainerExportJob) -> str:
        if order.pace is None:
            return order.condition.sampling
        return (
            f"FFmpeg's filter fps={order.pace.fps}:round=down, at most {order.pace.at_most}: the last frame "
            "of each stretch of 1/fps seconds"
        )

    def differences(self, order: TrainerExportJob) -> Sequence[str]:
        differences = [
            (
                "a row that cannot be read is replaced by a random one, reported only on stdout: count "
                "its messages"
            ),
            "blanks at the ends of texts around media are taken away",
        ]
        if order.shape == "pictures":
            return differences
        differences += [
            (
                f"its frames are not those of {order.condition.sampling}: FFmpeg gives the last frame of each "
                "stretch of 1/fps seconds, and it is dated with the stretch's beginning"
            ),
            (
                "boxes are in pixels of the clip itself; here a clip with a longer side than 1024 is shown at "
                "1024, and its boxes are pixels of that. Normalise clips to 1024 first to make both alike"
            ),
        ]
        if order.shows_times:
            differences.append(
                "its train.py hands the instants over as `time`, its chat template looks for `timestamps`: "
                'no instant reaches the model. Fix that line, or set input="frames"'
            )
        return differences

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        return conversation.by_speaker()

    def files(
        self, order: TrainerExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        written = {f"{part}.jsonl": format_json_lines(items) for part, items in rows.items()}
        script = _SCRIPT.format(
            devices=order.recipe.devices.count,
            part=TRAIN,
            flags=format_shell_flags(self._settings(order, longest)),
        )
        return written | {"train.sh": script}

    def command(self, order: TrainerExportJob) -> str:  # noqa: ARG002  the contract's signature
        return 'sh train.sh "$PWD"'

    def _settings(self, order: TrainerExportJob, longest: int) -> dict[str, Any]:
        model, flags = order.recipe.model, build_shared_trainer_arguments(order.recipe)
        rate = flags.pop("learning_rate")
        flags |= {
            "model_type": self.families[model.family],
            "model_path": str(order.model_folder or model.name),
            "vision_encoder": "DAMO-NLP-SG/SigLIP-NaViT",
            "mm_projector_type": "mlp2x_gelu",
            "image_merge_size": 1,
            "video_merge_size": 2,
            "model_max_length": longest,
            "mm_max_length": min(longest, 16384),
            "llm_lr": rate,
            "gradient_checkpointing": model.gradient_checkpointing,
        }
        if model.vision == "trained":
            flags |= {"mm_projector_lr": rate, "vision_encoder_lr": rate}
        if model.tune == "lora":
            flags |= {
                "lora_enable": True,
                "lora_r": model.lora_rank,
                "lora_alpha": model.lora_alpha,
                "lora_dropout": model.lora_dropout,
            }
        if order.pace is not None:
            _require_single_clip_questions(order)
            flags |= {"fps": _require_integer_frame_rate(order), "max_frames": order.pace.at_most}
        return flags


def _require_single_clip_questions(order: TrainerExportJob) -> None:
    if any(data.instrument.subject == "pair" for data in order.recipe.data):
        setting, problem = "data.protocol", "its trainer takes one video in a row, not a pair"
        raise InvalidSettingError(setting, problem, 'Set input="frames"')


def _require_integer_frame_rate(order: TrainerExportJob) -> int:
    fps = order.pace.fps if order.pace else None
    if fps is None or fps.denominator != 1:
        setting, problem = "data.condition.sampling", f"its trainer takes no rate of {fps}"
        raise InvalidSettingError(setting, problem, "Name a whole number of frames a second")
    return int(fps)


FORMAT: Final = _VideoLlama3Format()
