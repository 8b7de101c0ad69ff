"""A tiny model that can learn to see within minutes: weights sized for its width, an eye for dark scenes.

The tokens of its vocabulary are whole sentences of the question and of the answers, so that its few steps go into
seeing; numbers stay spelled digit by digit.
"""

import math
from pathlib import Path

from tiny_models import write_tiny
from unreel.protocols.trace.prompts import PROMPTS, VIDEO_MARK

PROMPT = "fine-tuning-no-explanation"
PATCH = 16
_DARK = 0.3
"""Mean and spread of what is drawn, in parts of white."""


def write_learner(folder: Path, *, seed: int = 0) -> Path:
    """A tiny Qwen3-VL in `folder`."""
    import torch
    from transformers import AutoConfig, AutoProcessor, Qwen3VLForConditionalGeneration

    write_tiny("qwen3-vl", folder)
    processor = AutoProcessor.from_pretrained(folder)
    processor.tokenizer.add_tokens(_sentences())
    for eye in (processor.image_processor, processor.video_processor):
        eye.image_mean, eye.image_std = [_DARK] * 3, [_DARK] * 3
    config = AutoConfig.from_pretrained(folder)
    config.text_config.vocab_size = len(processor.tokenizer)
    config.text_config.num_hidden_layers = 3
    config.vision_config.depth = 2
    config.vision_config.deepstack_visual_indexes = [0]
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config)
    _size(model)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _sentences() -> list[str]:
    asked = PROMPTS[PROMPT].text.removeprefix(VIDEO_MARK)
    return [
        asked,
        "REAL. The video is real. There is no unnatural part.",
        "FAKE. The video is AI-generated. The unnatural part is at [",
        "] starting ",
        " seconds.",
        *(f"<{tenths / 10:.1f} seconds>" for tenths in range(40)),
    ]


def _size(model: object) -> None:
    """Weights as large as their inputs are many: those of a wide model would hardly move a narrow one's signal."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim < 2:
                continue
            if "embed_tokens" in name or "pos_embed" in name:
                weight.normal_(0, 0.5)
            elif "lm_head" in name:
                weight.normal_(0, 0.02)
            else:
                weight.normal_(0, 1 / math.sqrt(weight[0].numel()))
