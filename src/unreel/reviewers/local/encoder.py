"""Encoding of requests as tensors, the same for training, inference and tests."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image
from transformers import AutoProcessor
from transformers.models.qwen2_vl import image_processing_qwen2_vl as qwen_images
from transformers.models.qwen2_vl import video_processing_qwen2_vl as qwen25_videos
from transformers.models.qwen3_vl import video_processing_qwen3_vl as qwen3_videos
from transformers.models.video_llama_3 import image_processing_video_llama_3 as llama_images
from transformers.models.video_llama_3 import video_processing_video_llama_3 as llama_videos
from transformers.video_utils import VideoMetadata

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.reviewers.contract import ClipInput, ReviewRequest, ShownFrame
from unreel.reviewers.endpoint.model_families import format_box_space, get_model_family
from unreel.reviewers.local.checkpoint import CheckpointInputSpec, FamilyName
from unreel.reviewers.message_parts import (
    Part,
    build_message_parts,
    build_rejected_request_failure,
    compute_family_frame_timing,
    explain_unsupported_video,
)

IGNORED = -100

_PROCESSORS: Mapping[FamilyName, str] = {
    "qwen2.5-vl": "Qwen2_5_VLProcessor",
    "qwen3-vl": "Qwen3VLProcessor",
    "videollama3": "VideoLlama3Processor",
}
_WITH_TYPES = frozenset({"qwen2.5-vl", "qwen3-vl"})
"""Families whose token positions depend on token types: image (1) and video (2)."""
_CANNOT_TAKE = (OSError, ValueError, TypeError, RuntimeError, SyntaxError)
"""Exceptions that Pillow, tokenizers and processors raise for invalid frames and texts."""
_TURN = "\u2063answer\u2063"


@dataclass(frozen=True)
class EncodedRequest:
    """A request as tensors for a model, followed by the training answer if one was given."""

    input_ids: torch.Tensor
    """One-dimensional token ids: the prompt, then the target if one was given."""
    n_prompt: int
    """Number of prompt tokens."""
    media: Mapping[str, torch.Tensor]
    """Pixels, grids and other inputs of the model, by the model's own argument names."""


class RequestEncoder:
    """Encoder of requests as tensors for one checkpoint. It loads no weights.

    It can be pickled; unpickling opens the processor again.
    """

    def __init__(self, folder: str | Path, input_spec: CheckpointInputSpec) -> None:
        self._folder, self._taught = Path(folder), input_spec
        self._processor = _open_model_processor(self._folder, input_spec.family)
        tokenizer = self._processor.tokenizer
        self._special = [str(t) for t in tokenizer.added_tokens_decoder.values() if t.special]
        self._end_id: int = tokenizer.eos_token_id
        self._pad_id: int = tokenizer.pad_token_id
        self._require_end_of_turn()

    @classmethod
    def open(cls, folder: str | Path, input_spec: CheckpointInputSpec) -> "RequestEncoder":
        """Open the processor of the checkpoint in `folder`; no weights are loaded.

        Raise `InvalidSettingError` if the folder has no processor of the model family.
        """
        return cls(folder, input_spec)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., "RequestEncoder"], tuple[Path, CheckpointInputSpec]]:
        return RequestEncoder, (self._folder, self._taught)

    @property
    def taught(self) -> CheckpointInputSpec:
        """Return the input format of the encoder's checkpoint."""
        return self._taught

    @property
    def end_id(self) -> int:
        """Return the id of the token that ends an answer."""
        return self._end_id

    @property
    def pad_id(self) -> int:
        """Return the id of the token that pads the rows of a batch."""
        return self._pad_id

    @property
    def processor(self) -> Any:
        """Return the transformers processor, for trainers that tokenise themselves."""
        return self._processor

    def save(self, folder: Path) -> None:
        """Write the processor, with its resize bounds, to the folder of a checkpoint."""
        self._processor.save_pretrained(folder)

    def seen_size(self, clip_input: ClipInput) -> tuple[int, int]:
        """Return width and height of frames after the processor's resize; the shown size if it rejects them."""
        width, height = clip_input.shown_size
        size = _SIZES[self._taught.family, self._taught.input]
        try:
            tall, wide = size(self._processor, height, width, max(1, len(clip_input.frames)))
        except ValueError:
            return width, height
        return wide, tall

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space of boxes in the answers, in `parse_box_space` notation."""
        boxes, shown = self._taught.box_space, clip_input.shown_size
        return format_box_space(boxes, shown=shown, seen=self.seen_size(clip_input))

    def encode(self, request: ReviewRequest, target: str | None = None) -> EncodedRequest | Failure:
        """Encode `request` and, if given, the training answer `target`; a failure if the model cannot take it."""
        if reason := self._impossible(request, target):
            return build_rejected_request_failure(reason)
        parts = build_message_parts(
            request, form=self._taught.input, times=get_model_family(self._taught.family).times
        )
        if isinstance(parts, Failure):
            return parts
        try:
            inputs = self._process(parts)
            ids, n_prompt = inputs.pop("input_ids")[0], len(inputs.pop("attention_mask")[0])
            if target is not None:
                answer = self._processor.tokenizer(target, add_special_tokens=False).input_ids
                ids = torch.cat([ids, torch.tensor([*answer, self._end_id])])
        except _CANNOT_TAKE as error:
            return build_rejected_request_failure(f"{type(error).__name__}: {error}")
        inputs.pop("mm_token_type_ids", None)
        return EncodedRequest(ids, n_prompt, dict(inputs))

    def converse(self, request: ReviewRequest) -> list[dict[str, Any]] | Failure:
        """Return `request` as a chat with images, for trainers; a failure if the model cannot take it so."""
        if self._taught.input != "frames":
            return build_rejected_request_failure(
                "a conversation contains pictures, but this model takes videos"
            )
        if reason := self._impossible(request, None):
            return build_rejected_request_failure(reason)
        parts = build_message_parts(
            request, form="frames", times=get_model_family(self._taught.family).times
        )
        if isinstance(parts, Failure):
            return parts
        content = [
            {"type": "image", "image": _decode_frame_image(part)}
            if isinstance(part, ShownFrame)
            else {"type": "text", "text": part}
            for part in parts
        ]
        return [{"role": "user", "content": content}]

    def collate(
        self, encoded: Sequence[EncodedRequest], *, pad: Literal["left", "right"]
    ) -> dict[str, torch.Tensor]:
        """Build one padded batch from encoded requests; it has `labels` if any request has a target."""
        longest = max(len(item.input_ids) for item in encoded)
        ids = torch.full((len(encoded), longest), self._pad_id)
        mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
        for row, item in enumerate(encoded):
            n = len(item.input_ids)
            start = longest - n if pad == "left" else 0
            ids[row, start : start + n] = item.input_ids
            mask[row, start : start + n] = 1
            labels[row, start + item.n_prompt : start + n] = item.input_ids[item.n_prompt :]
        batch = {"input_ids": ids, "attention_mask": mask}
        for name in dict.fromkeys(name for item in encoded for name in item.media):
            batch[name] = torch.cat([item.media[name] for item in encoded if name in item.media])
        if self._taught.family in _WITH_TYPES:
            types = torch.zeros_like(ids)
            types[ids == self._processor.image_token_id] = 1
            types[ids == self._processor.video_token_id] = 2
            batch["mm_token_type_ids"] = types
        if any(item.n_prompt < len(item.input_ids) for item in encoded):
            batch["labels"] = labels
        return batch

    def decode(self, ids: torch.Tensor | Sequence[int]) -> str:
        """Return the text of the token ids, without special tokens."""
        text: str = self._processor.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    def decode_prompt(self, encoded: EncodedRequest) -> str:
        """Return the text of the prompt of an encoded request, with all special tokens."""
        text: str = self._processor.tokenizer.decode(encoded.input_ids[: encoded.n_prompt])
        return text

    def _impossible(self, request: ReviewRequest, target: str | None) -> str:
        text = request.prompt + (target or "")
        if hidden := next((word for word in self._special if word in text), None):
            return f"the text contains {hidden!r}, which is a special token of the model"
        if request.condition.audio == "on":
            return f"the {self._taught.family} family takes no sound"
        if self._taught.input != "video":
            return ""
        return explain_unsupported_video(self._taught.family, request)

    def _process(self, parts: Sequence[Part]) -> dict[str, Any]:
        content: list[dict[str, str]] = []
        pictures: list[Image.Image] = []
        videos: list[torch.Tensor] = []
        timings: list[VideoMetadata] = []
        for part in parts:
            match part:
                case str():
                    content.append({"type": "text", "text": part})
                case ShownFrame():
                    content.append({"type": "image"})
                    pictures.append(_decode_frame_image(part))
                case tuple() as frames:
                    content.append({"type": "video"})
                    videos.append(torch.stack([_decode_frame_tensor(frame) for frame in frames]))
                    timing = compute_family_frame_timing(self._taught.family, frames)
                    total, fps = timing.indices[-1] + 1, float(timing.fps)
                    timings.append(
                        VideoMetadata(
                            total_num_frames=total,
                            fps=fps,
                            duration=total / fps,
                            frames_indices=list(timing.indices),
                        )
                    )
                case _:
                    raise ValueError(f"a model of this machine takes no {type(part).__name__}")
        text = self._processor.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
        media: dict[str, Any] = {"images": pictures} if pictures else {}
        if videos:
            settings: dict[str, Any] = {"video_metadata": timings, "do_sample_frames": False}
            if self._taught.family != "videollama3":
                # Set explicitly, because the default changes with transformers 5.22.
                settings["cap_pixels_per_frame"] = False
            media |= {"videos": videos, "videos_kwargs": settings}
        return dict(self._processor(text=[text], return_tensors="pt", **media))

    def _require_end_of_turn(self) -> None:
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _TURN}]
        text = self._processor.apply_chat_template(turns, tokenize=False)
        end = self._processor.tokenizer.eos_token
        if not text.partition(_TURN)[2].startswith(end):
            setting = str(self._folder)
            raise InvalidSettingError(
                setting,
                f"the chat template does not end an answer with {end}, at which it stops",
                "Use the model's own tokenizer and chat template",
            )


def _open_model_processor(folder: Path, name: FamilyName) -> Any:
    setting, remedy = str(folder), f"Name the folder of a {name} model with its processor"
    try:
        processor = AutoProcessor.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidSettingError(
            setting, f"the processor cannot be opened: {error}", remedy
        ) from error
    if type(processor).__name__ != _PROCESSORS[name]:
        raise InvalidSettingError(
            setting,
            f"the processor is a {type(processor).__name__}, not a {_PROCESSORS[name]}",
            remedy,
        )
    return processor


def _decode_frame_image(frame: ShownFrame) -> Image.Image:
    with Image.open(io.BytesIO(frame.jpeg), formats=("JPEG",)) as picture:
        return picture.convert("RGB")


def _decode_frame_tensor(frame: ShownFrame) -> torch.Tensor:
    picture = _decode_frame_image(frame)
    flat = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return flat.view(picture.height, picture.width, 3).permute(2, 0, 1)


def _get_resize_bounds(half: Any) -> dict[str, int]:
    return {
        "factor": half.patch_size * half.merge_size,
        "min_pixels": half.size["shortest_edge"],
        "max_pixels": half.size["longest_edge"],
    }


def _resize_image(images: Any, processor: Any, height: int, width: int, _n: int) -> tuple[int, int]:
    bounds = _get_resize_bounds(processor.image_processor)
    size: tuple[int, int] = images.smart_resize(height, width, **bounds)
    return size


def _resize_qwen25_video(processor: Any, height: int, width: int, _n: int) -> tuple[int, int]:
    bounds = _get_resize_bounds(processor.video_processor)
    size: tuple[int, int] = qwen25_videos.smart_resize(height, width, **bounds)
    return size


def _resize_qwen3_video(processor: Any, height: int, width: int, n: int) -> tuple[int, int]:
    video = processor.video_processor
    bounds = _get_resize_bounds(video) | {"temporal_factor": video.temporal_patch_size}
    size: tuple[int, int] = qwen3_videos.smart_resize(n, height, width, **bounds)
    return size


def _resize_videollama3_video(processor: Any, height: int, width: int, n: int) -> tuple[int, int]:
    bounds = _get_resize_bounds(processor.video_processor)
    bounds["max_pixels"] //= n  # the maximum is for all frames together
    size: tuple[int, int] = llama_videos.smart_resize(height, width, **bounds)
    return size


_SIZES: Mapping[tuple[str, str], Callable[..., tuple[int, int]]] = {
    ("qwen2.5-vl", "frames"): partial(_resize_image, qwen_images),
    ("qwen2.5-vl", "video"): _resize_qwen25_video,
    ("qwen3-vl", "frames"): partial(_resize_image, qwen_images),
    ("qwen3-vl", "video"): _resize_qwen3_video,
    ("videollama3", "frames"): partial(_resize_image, llama_images),
    ("videollama3", "video"): _resize_videollama3_video,
}
"""Functions that compute each processor's size of resized frames; tests compare them with its grids."""
