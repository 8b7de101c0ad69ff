"""Tiny pipelines of diffusers with random weights: real classes, real files, sizes that a slow core runs."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from unreel.creators.pipeline_families import FAMILIES, FamilyName

_SIZE = 32
_WORDS = ("<pad>", "</s>", "<unk>", "a", "ball", "crosses", "the", "picture", ".")


def write_tiny_pipeline(family: FamilyName, folder: Path, *, seed: int = 0) -> None:
    """Write a tiny pipeline of `family` to `folder`, which starts from words."""
    import torch

    torch.manual_seed(seed)
    _MAKERS[family]().save_pretrained(folder, safe_serialization=True)


def write_tiny_image_pipeline(family: FamilyName, folder: Path, *, seed: int = 0) -> None:
    """The same for one that starts from an image: cogvideox, ltx or wan."""
    import torch

    torch.manual_seed(seed)
    made = _MAKERS[family]()
    of, parts = import_module("diffusers"), dict(made.components)
    if family != "ltx":  # the first frame's latents, and for wan a mask, stand beside the noise
        own = type(parts["transformer"])
        told = {**parts["transformer"].config, "in_channels": {"cogvideox": 8, "wan": 36}[family]}
        parts["transformer"] = own.from_config(told)
    getattr(of, FAMILIES[family].from_image)(**parts).save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(_WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=words, **named)


def _text_encoder() -> Any:
    from transformers import T5Config, T5EncoderModel

    sizes = {"d_model": _SIZE, "d_kv": 8, "d_ff": 37, "num_layers": 1, "num_heads": 4}
    return T5EncoderModel(T5Config(vocab_size=len(_WORDS), **sizes)).eval()


def _ltx() -> Any:
    of = import_module("diffusers")

    scaled = (True, True, False, False)
    vae = of.AutoencoderKLLTXVideo(
        latent_channels=8,
        block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
        spatio_temporal_scaling=scaled,
        decoder_spatio_temporal_scaling=scaled,
        patch_size=1,
        patch_size_t=1,
    )
    transformer = of.LTXVideoTransformer3DModel(
        in_channels=8,
        out_channels=8,
        num_attention_heads=4,
        attention_head_dim=8,
        cross_attention_dim=_SIZE,
        num_layers=1,
        caption_channels=_SIZE,
    )
    return of.LTXPipeline(
        scheduler=of.FlowMatchEulerDiscreteScheduler(),
        vae=vae,
        text_encoder=_text_encoder(),
        tokenizer=_tokenizer(),
        transformer=transformer,
    )


def _wan() -> Any:
    of = import_module("diffusers")
    from transformers import UMT5Config, UMT5EncoderModel

    vae = of.AutoencoderKLWan(base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1)
    transformer = of.WanTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=16,
        out_channels=16,
        text_dim=_SIZE,
        ffn_dim=32,
        num_layers=1,
        rope_max_seq_len=32,
    )
    sizes = {"d_model": _SIZE, "d_kv": 8, "d_ff": 37, "num_layers": 1, "num_heads": 4}
    return of.WanPipeline(
        tokenizer=_tokenizer(),
        text_encoder=UMT5EncoderModel(UMT5Config(vocab_size=len(_WORDS), **sizes)).eval(),
        vae=vae,
        scheduler=of.FlowMatchEulerDiscreteScheduler(),
        transformer=transformer,
    )


def _cogvideox() -> Any:
    of = import_module("diffusers")

    vae = of.AutoencoderKLCogVideoX(
        block_out_channels=(8, 8, 8, 8),
        latent_channels=4,
        layers_per_block=1,
        norm_num_groups=2,
    )
    transformer = of.CogVideoXTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        time_embed_dim=2,
        text_embed_dim=_SIZE,
        num_layers=1,
        sample_width=8,
        sample_height=8,
        sample_frames=9,
    )
    return of.CogVideoXPipeline(
        tokenizer=_tokenizer(),
        text_encoder=_text_encoder(),
        vae=vae,
        transformer=transformer,
        scheduler=of.CogVideoXDDIMScheduler(),
    )


def _hunyuan_video() -> Any:
    of = import_module("diffusers")
    from transformers import CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel

    sizes = {"intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4}
    marks = {"vocab_size": len(_WORDS), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
    vae = of.AutoencoderKLHunyuanVideo(
        latent_channels=4,
        block_out_channels=(8, 8, 8, 8),
        layers_per_block=1,
        norm_num_groups=4,
    )
    transformer = of.HunyuanVideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=10,
        num_layers=1,
        num_single_layers=1,
        num_refiner_layers=1,
        text_embed_dim=16,
        pooled_projection_dim=8,
        rope_axes_dim=(2, 4, 4),
    )
    return of.HunyuanVideoPipeline(
        text_encoder=LlamaModel(LlamaConfig(hidden_size=16, **sizes, **marks)).eval(),
        tokenizer=_tokenizer(),
        transformer=transformer,
        vae=vae,
        scheduler=of.FlowMatchEulerDiscreteScheduler(),
        text_encoder_2=CLIPTextModel(CLIPTextConfig(hidden_size=8, **sizes, **marks)).eval(),
        tokenizer_2=_tokenizer(),
    )


_MAKERS: Mapping[FamilyName, Callable[[], Any]] = {
    "cogvideox": _cogvideox,
    "hunyuan-video": _hunyuan_video,
    "ltx": _ltx,
    "wan": _wan,
}
