"""Export to LLaMA-Factory: `dataset_info.json`, rows in sharegpt format, and a YAML configuration."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from unreel.media.sampling import LlamaFactorySampling
from unreel.protocols.presentation import LEAST_PIXELS
from unreel.training.formats.contract import (
    HELD_OUT,
    TRAIN,
    Shape,
    TrainerConversation,
    TrainerExportJob,
)
from unreel.training.formats.shared_settings import (
    build_shared_trainer_arguments,
    compute_llamafactory_size,
    format_flat_yaml,
    format_json_document,
    read_processor_resize_rule,
)

_TAGS: Final = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
}
_RATE: Final = 2.0
"""LLaMA-Factory's default frame rate, for exports without a frame rate."""


class _LlamaFactoryFormat:
    name = "llamafactory"
    known_from = "LLaMA-Factory 0.9.5"
    families: Final = {"qwen2.5-vl": "qwen2_vl", "qwen3-vl": "qwen3_vl_nothink"}
    shapes: Final[Sequence[Shape]] = ("pictures", "film", "file")

    def seen(self, order: TrainerExportJob, width: int, height: int) -> tuple[int, int]:
        half = "image" if order.shape == "pictures" else "video"
        rule = read_processor_resize_rule(order.recipe.model.family, order.model_folder, half)
        bounded = compute_llamafactory_size(width, height, low=LEAST_PIXELS, high=order.most_pixels)
        return rule.size(*bounded)

    def sampling(self, order: TrainerExportJob) -> str:
        if order.shape != "file" or order.pace is None:
            return order.condition.sampling
        return str(LlamaFactorySampling(order.pace.fps, order.pace.at_most))

    def differences(self, order: TrainerExportJob) -> Sequence[str]:
        differences, family = [], order.recipe.model.family
        used = self.sampling(order)
        if used != order.condition.sampling:
            differences.append(
                f"its frames are those of {used}, not of {order.condition.sampling}. Set "
                f"data.condition.sampling={used}, and clips are asked with the same frames"
            )
        if order.shape == "file":
            differences.append(
                "a clip with a longer side than 1024 comes there in its own size, bounded by its area "
                f"alone ({order.most_pixels:,} pixels); here it is shown at 1024. Set "
                "data.condition.max_pixels to make both alike"
            )
        if order.shape == "film" and order.shows_times:
            differences.append(
                "it dates the frames of a list 0, 1/fps, 2/fps, ...: true for frames at these times, "
                "and `rows.jsonl` has the error of each row"
            )
        if order.shape == "file" and order.shows_times and family == "qwen2.5-vl":
            differences.append(
                "it dates n frames of a clip as if they lay length/n apart; it takes them "
                "length/(n - 1) apart, from the first to the last"
            )
        if family == "qwen2.5-vl" and order.shape != "pictures":
            differences.append(
                "transformers 5.6, which it pins, ignores the length of a video in the positions of the "
                "text after it; a server that counts it (vLLM) disagrees. Here that is fixed"
            )
        return differences

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        return conversation.by_role()

    def files(
        self, order: TrainerExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        medium = "images" if order.shape == "pictures" else "videos"
        written = {f"{name}.json": format_json_document(list(part)) for name, part in rows.items()}
        info = {
            f"unreel_{part}": {
                "file_name": f"{part}.json",
                "formatting": "sharegpt",
                "columns": {"messages": "messages", medium: medium},
                "tags": _TAGS,
            }
            for part in rows
        }
        settings = self._settings(order, longest, watched=bool(rows.get(HELD_OUT)))
        return written | {
            "dataset_info.json": format_json_document(info),
            "train.yaml": format_flat_yaml(settings),
        }

    def command(self, order: TrainerExportJob) -> str:  # noqa: ARG002  the contract's signature
        return "llamafactory-cli train train.yaml"

    def _settings(self, order: TrainerExportJob, longest: int, *, watched: bool) -> dict[str, Any]:
        model = order.recipe.model
        settings: dict[str, Any] = {
            "model_name_or_path": str(order.model_folder or model.name),
            "trust_remote_code": False,
            "stage": "sft",
            "do_train": True,
            "finetuning_type": model.tune,
            "freeze_vision_tower": model.vision == "frozen",
            "freeze_multi_modal_projector": model.vision == "frozen",
            "disable_gradient_checkpointing": not model.gradient_checkpointing,
            "template": self.families[model.family],
            "dataset": f"unreel_{TRAIN}",
            "dataset_dir": ".",
            "media_dir": ".",
            "cutoff_len": longest,
            "image_max_pixels": order.most_pixels,
            "image_min_pixels": LEAST_PIXELS,
            "video_max_pixels": order.most_pixels,
            "video_min_pixels": LEAST_PIXELS,
            "video_fps": float(order.pace.fps) if order.pace else _RATE,
            "video_maxlen": order.pace.at_most if order.pace else 128,
            "preprocessing_num_workers": 1,
        }
        if model.tune == "lora":
            settings |= {
                "lora_rank": model.lora_rank,
                "lora_alpha": model.lora_alpha,
                "lora_dropout": model.lora_dropout,
                "lora_target": "all",
            }
        if watched:
            settings |= {
                "eval_dataset": f"unreel_{HELD_OUT}",
                "eval_strategy": "steps",
                "eval_steps": order.recipe.watch.every,
                "per_device_eval_batch_size": 1,
            }
        return settings | build_shared_trainer_arguments(order.recipe)


FORMAT: Final = _LlamaFactoryFormat()
