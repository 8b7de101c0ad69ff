"""ms-swift: rows as JSON lines, and one JSON file of arguments and environment for `swift sft`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from unreel.reviewers.endpoint.model_families import FrameResizeRule
from unreel.training.formats.contract import (
    HELD_OUT,
    TRAIN,
    Shape,
    TrainerConversation,
    TrainerExportJob,
)
from unreel.training.formats.shared_settings import (
    build_shared_trainer_arguments,
    format_json_document,
    format_json_lines,
    get_token_side_pixels,
)

_LEAST_TOKENS: Final = 4
_LEAST_FRAMES: Final = 2


class _SwiftFormat:
    name = "ms-swift"
    known_from = "ms-swift 4.6.0 with qwen-vl-utils 0.0.14"
    families: Final = {"qwen2.5-vl": "qwen2_5_vl", "qwen3-vl": "qwen3_vl"}
    shapes: Final[Sequence[Shape]] = ("pictures", "file")

    def seen(self, order: TrainerExportJob, width: int, height: int) -> tuple[int, int]:
        unit = get_token_side_pixels(order.recipe.model.family)
        rule = FrameResizeRule(
            multiple=unit,
            min_pixels=_LEAST_TOKENS * unit**2,
            max_pixels=_compute_max_frame_tokens(order) * unit**2,
        )
        return rule.size(width, height)

    def sampling(self, order: TrainerExportJob) -> str:
        if order.pace is None:
            return order.condition.sampling
        fps, limit = order.pace.fps, order.pace.at_most
        return (
            f"qwen-vl-utils: seconds x {fps} frames, made even, at least {_LEAST_FRAMES} and at most "
            f"{limit}, spread from the first to the last"
        )

    def differences(self, order: TrainerExportJob) -> Sequence[str]:
        if order.shape == "pictures":
            return []
        differences = [
            (
                f"its frames are not those of {order.condition.sampling}: an even number, spread from the "
                'first frame to the last. Only input="frames" gives it ours'
            ),
            (
                "a clip with a longer side than 1024 comes there in its own size, bounded by its area alone; "
                "here it is shown at 1024. Set data.condition.max_pixels to make both alike"
            ),
            "the video library depends on the installed packages; `train.json` names torchcodec",
        ]
        if order.shows_times and order.recipe.model.family == "qwen2.5-vl":
            differences.append(
                "it dates n frames of a clip as if they lay length/n apart; it takes them "
                "length/(n - 1) apart"
            )
        if order.recipe.model.family == "qwen2.5-vl":
            differences.append(
                "transformers ignores the length of a video in the positions of the text after it; a "
                "server that counts it (vLLM) disagrees. Here that is fixed"
            )
        return differences

    def row(self, conversation: TrainerConversation) -> Mapping[str, Any]:
        return conversation.by_role()

    def files(
        self, order: TrainerExportJob, rows: Mapping[str, Sequence[Mapping[str, Any]]], longest: int
    ) -> Mapping[str, str]:
        written = {f"{part}.jsonl": format_json_lines(items) for part, items in rows.items()}
        settings = self._settings(order, longest, watched=bool(rows.get(HELD_OUT)))
        return written | {"train.json": format_json_document(settings)}

    def command(self, order: TrainerExportJob) -> str:  # noqa: ARG002  the contract's signature
        return "swift sft train.json"

    def _settings(self, order: TrainerExportJob, longest: int, *, watched: bool) -> dict[str, Any]:
        model, settings = order.recipe.model, build_shared_trainer_arguments(order.recipe)
        settings["torch_dtype"] = "bfloat16" if settings.pop("bf16") else "float32"
        settings |= {
            "model": str(order.model_folder or model.name),
            "model_type": self.families[model.family],
            "template": self.families[model.family],
            "tuner_type": model.tune,
            "freeze_vit": model.vision == "frozen",
            "freeze_aligner": model.vision == "frozen",
            "gradient_checkpointing": model.gradient_checkpointing,
            "dataset": [f"{TRAIN}.jsonl"],
            "dataset_shuffle": False,
            "max_length": longest,
            "strict": True,
            "lazy_tokenize": True,
            "add_version": False,
            "ENV": self._environment(order),
        }
        if model.tune == "lora":
            settings |= {
                "lora_rank": model.lora_rank,
                "lora_alpha": model.lora_alpha,
                "lora_dropout": model.lora_dropout,
                "target_modules": ["all-linear"],
            }
        if watched:
            settings |= {
                "val_dataset": [f"{HELD_OUT}.jsonl"],
                "eval_steps": order.recipe.watch.every,
                "per_device_eval_batch_size": 1,
            }
        return settings

    def _environment(self, order: TrainerExportJob) -> dict[str, str]:
        tokens = str(_compute_max_frame_tokens(order))
        variables = {
            "IMAGE_MAX_TOKEN_NUM": tokens,
            "IMAGE_MIN_TOKEN_NUM": str(_LEAST_TOKENS),
            "VIDEO_MAX_TOKEN_NUM": tokens,
            "VIDEO_MIN_TOKEN_NUM": str(_LEAST_TOKENS),
        }
        if order.pace is not None:
            variables |= {
                "FPS": str(float(order.pace.fps)),
                "FPS_MIN_FRAMES": str(_LEAST_FRAMES),
                "FPS_MAX_FRAMES": str(order.pace.at_most),
                "FORCE_QWENVL_VIDEO_READER": "torchcodec",
            }
        return variables


def _compute_max_frame_tokens(order: TrainerExportJob) -> int:
    unit = get_token_side_pixels(order.recipe.model.family)
    return max(_LEAST_TOKENS, -(-order.most_pixels // unit**2))


FORMAT: Final = _SwiftFormat()
