"""Writes a tiny vision-language model of a real architecture: random weights, so it talks nonsense."""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2TokenizerFast,
    Qwen2VLImageProcessorFast,
    Qwen2VLVideoProcessor,
)

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"]
PADS = ["<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if 'text' in c %}{{ c['text'] }}"
    "{% else %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model(folder: str) -> None:
    """Write weights, tokenizer and processors to `folder`."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL + PADS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    words.train_from_iterator(["is the video real or fake, where, when and why"] * 10, trainer)
    tokenizer = Qwen2TokenizerFast(
        tokenizer_object=words,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
        additional_special_tokens=SPECIAL + PADS,
    )
    tokenizer.chat_template = TEMPLATE
    model = _model(tokenizer)
    model.save_pretrained(folder)
    images = Qwen2VLImageProcessorFast(min_pixels=28 * 28 * 4, max_pixels=28 * 28 * 16)
    Qwen2_5_VLProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


def _model(tokenizer: Qwen2TokenizerFast) -> Qwen2_5_VLForConditionalGeneration:
    end, pad = (tokenizer.convert_tokens_to_ids(word) for word in ("<|im_end|>", "<|endoftext|>"))
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "mrope_section": [4, 6, 6], "rope_theta": 1e4},
        "eos_token_id": end,
        "pad_token_id": pad,
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "num_heads": 4,
        "intermediate_size": 128,
        "out_hidden_size": 128,
        "patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [1],
    }
    marks = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{word}|>")
        for name, word in {
            "image": "image_pad",
            "video": "video_pad",
            "vision_start": "vision_start",
            "vision_end": "vision_end",
        }.items()
    }
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, **marks)
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = end
    model.generation_config.pad_token_id = pad
    model.generation_config.max_new_tokens = 24
    return model


if __name__ == "__main__":
    write_model(sys.argv[1])
