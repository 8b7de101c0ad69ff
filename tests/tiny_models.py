"""Tiny models of the real architectures: random weights, real processors, a vocabulary of our prompts' words."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unreel.protocols.protocol import get_protocol, list_protocol_names

if TYPE_CHECKING:
    from unreel.reviewers.local.checkpoint import FamilyName

_WORDS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
_PADS = ("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
_END, _PAD = "<|im_end|>", "<|endoftext|>"
FAMILIES: tuple["FamilyName", ...] = ("qwen2.5-vl", "qwen3-vl", "videollama3")
N_TOKENS = 1100
HIDDEN = 128

_TURNS = (
    "{% for m in messages %}SYSTEM<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' or 'image' in c or 'image_url' in c %}IMAGE"
    "{% elif c['type'] == 'video' or 'video' in c or 'video_url' in c %}VIDEO"
    "{% elif 'text' in c %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_QWEN = _TURNS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>").replace(
    "VIDEO", "<|vision_start|><|video_pad|><|vision_end|>"
)
_SYSTEM = (
    "{% if loop.first and m['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}"
)
TEMPLATES = {
    "qwen2.5-vl": _QWEN.replace("SYSTEM", _SYSTEM),
    "qwen3-vl": _QWEN.replace("SYSTEM", ""),
    "videollama3": _TURNS.replace("SYSTEM", _SYSTEM)
    .replace("IMAGE", "<|image_pad|>\n")
    .replace("VIDEO", "<|video_pad|>\n"),
}


def write_tiny(family: "FamilyName", folder: Path, *, seed: int = 0) -> None:
    """Write weights, tokenizer, chat template and processors of a tiny `family` to `folder`."""
    import torch

    tokenizer = _tokenizer(TEMPLATES[family])
    torch.manual_seed(seed)
    model, processor = _MAKERS[family](tokenizer)
    settings = model.generation_config
    settings.eos_token_id, settings.pad_token_id = (
        tokenizer.convert_tokens_to_ids(word) for word in (_END, _PAD)
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def _corpus() -> Iterator[str]:
    """What is said to a model and what it learns to say, each often enough to become whole words."""
    for name in list_protocol_names():
        for prompt in get_protocol(name).prompts.values():
            yield from [prompt.text] * 20
    answers = (
        "REAL. The video is real. There is no unnatural part.",
        "FAKE. The video is AI-generated. The unnatural part is at [, , , ] starting . seconds.",
        "The reason is because the object disappears, flickers, blurs and appears again.",
        "<think>Problem Description: \nStandard Adherence: </think>\n<answer></answer>",
        "system\nuser\nassistant\nYou are a helpful assistant. s Video : < seconds>",
        "Time : Time s",
    )
    for answer in answers:
        yield from [answer] * 40


def _tokenizer(template: str) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast
    from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

    pieces = Tokenizer(models.BPE())
    pieces.normalizer = normalizers.NFC()
    pieces.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS,
        special_tokens=[*_WORDS, *_PADS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(_corpus(), trainer)
    tokenizer = Qwen2TokenizerFast(
        tokenizer_object=pieces,
        eos_token=_END,
        pad_token=_PAD,
        unk_token=_PAD,
        additional_special_tokens=[*_WORDS, *_PADS],
    )
    tokenizer.chat_template = template
    return tokenizer


def _text(tokenizer: Any, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "eos_token_id": tokenizer.convert_tokens_to_ids(_END),
        "pad_token_id": tokenizer.convert_tokens_to_ids(_PAD),
        "bos_token_id": None,
        **more,
    }


def _marks(tokenizer: Any, *names: str) -> dict[str, int]:
    words = {"image": "image_pad", "video": "video_pad"}
    return {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{words.get(name, name)}|>")
        for name in names
    }


_ALL_MARKS = ("image", "video", "vision_start", "vision_end")


def _qwen25(tokenizer: Any) -> tuple[Any, Any]:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    rope = {"rope_type": "default", "mrope_section": [4, 6, 6], "rope_theta": 1e4}
    vision = {
        "depth": 4,
        "hidden_size": 64,
        "num_heads": 4,
        "intermediate_size": 128,
        "out_hidden_size": HIDDEN,
        "patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [1, 3],
        "tokens_per_second": 2,
    }
    config = Qwen2_5_VLConfig(
        text_config=_text(tokenizer, rope_parameters=rope),
        vision_config=vision,
        **_marks(tokenizer, *_ALL_MARKS),
    )
    size = {"shortest_edge": 4 * 28**2, "longest_edge": 64 * 28**2}
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=size),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(size=size),
        chat_template=tokenizer.chat_template,
    )
    return Qwen2_5_VLForConditionalGeneration(config), processor


def _qwen3(tokenizer: Any) -> tuple[Any, Any]:
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    rope = {
        "rope_type": "default",
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
        "rope_theta": 1e4,
    }
    vision = {
        "depth": 4,
        "hidden_size": 64,
        "num_heads": 4,
        "intermediate_size": 128,
        "out_hidden_size": HIDDEN,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [1, 2],
    }
    config = Qwen3VLConfig(
        text_config=_text(tokenizer, head_dim=32, rope_parameters=rope),
        vision_config=vision,
        **_marks(tokenizer, *_ALL_MARKS),
    )
    normal = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    images = Qwen2VLImageProcessor(
        patch_size=16, size={"shortest_edge": 4 * 32**2, "longest_edge": 64 * 32**2}, **normal
    )
    # Of a video both bounds are for all its frames together.
    videos = Qwen3VLVideoProcessor(size={"shortest_edge": 8 * 32**2, "longest_edge": 512 * 32**2})
    processor = Qwen3VLProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        video_processor=videos,
        chat_template=tokenizer.chat_template,
    )
    return Qwen3VLForConditionalGeneration(config), processor


def _videollama3(tokenizer: Any) -> tuple[Any, Any]:
    from transformers import (
        VideoLlama3Config,
        VideoLlama3ForConditionalGeneration,
        VideoLlama3ImageProcessor,
        VideoLlama3Processor,
        VideoLlama3VideoProcessor,
    )

    rope = {"rope_type": "default", "rope_theta": 1e4}
    vision = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "patch_size": 14,
    }
    config = VideoLlama3Config(
        text_config=_text(tokenizer, model_type="qwen2", rope_parameters=rope),
        vision_config=vision,
        **_marks(tokenizer, "image", "video"),
    )
    processor = VideoLlama3Processor(
        image_processor=VideoLlama3ImageProcessor(
            size={"shortest_edge": 4 * 28**2, "longest_edge": 64 * 28**2}
        ),
        tokenizer=tokenizer,
        video_processor=VideoLlama3VideoProcessor(
            size={"shortest_edge": 4 * 28**2, "longest_edge": 512 * 28**2}
        ),
        chat_template=tokenizer.chat_template,
    )
    return VideoLlama3ForConditionalGeneration(config), processor


_MAKERS = {"qwen2.5-vl": _qwen25, "qwen3-vl": _qwen3, "videollama3": _videollama3}


if __name__ == "__main__":
    write_tiny(sys.argv[1], Path(sys.argv[2]))  # type: ignore[arg-type]
