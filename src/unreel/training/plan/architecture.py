"""Dimensions of a model from its name or from its `config.json`; no weights are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
from unreel.reviewers.local.input_format import FamilyName

_CONFIG: Final = "config.json"
_LARGEST: Final = 10**7
"""Maximum width, depth or vocabulary; a model with a larger value is rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextModelDimensions:
    """Dimensions of the language model."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    """Whether the embedding is also the output layer."""

    @property
    def linear(self) -> tuple[tuple[int, int], ...]:
        """Return the sizes of a layer's matrices: queries, keys, values, output, and three of the MLP."""
        wide, narrow = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return (
            (self.hidden, wide),
            (self.hidden, narrow),
            (self.hidden, narrow),
            (wide, self.hidden),
            (self.hidden, self.inner),
            (self.hidden, self.inner),
            (self.inner, self.hidden),
        )

    @property
    def worked(self) -> int:
        """Return the number of parameters that compute on every token: all except the embedding lookup."""
        return self.layers * sum(a * b for a, b in self.linear) + self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """Return the number of all parameters of the language model."""
        return self.worked + (0 if self.tied else self.hidden * self.vocabulary)

    def adapter(self, rank: int) -> int:
        """Return the number of parameters of a LoRA of rank `rank` on every matrix of every layer."""
        return self.layers * sum(rank * (a + b) for a, b in self.linear)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionModelDimensions:
    """Dimensions of the vision encoder and of its projection to the language model."""

    layers: int
    hidden: int
    inner: int
    gated: bool
    """Whether its MLPs have three matrices, as in Qwen2.5-VL, or two."""
    patch: int
    full_layers: int
    """Number of layers with attention over all patches of a frame; the other layers use windows."""
    bridge: int
    """Number of parameters of the projection to the language model."""

    @property
    def parameters(self) -> int:
        """Return the number of all parameters of the vision encoder, including the projection."""
        matrices = 3 if self.gated else 2
        layer = 4 * self.hidden**2 + matrices * self.hidden * self.inner
        return self.layers * layer + self.bridge


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArchitecture:
    """Dimensions of a model's language and vision parts, and the source of these numbers."""

    text: TextModelDimensions
    vision: VisionModelDimensions
    known_from: str


def _build_text_dimensions(  # noqa: PLR0913  one number for each dimension
    layers: int, hidden: int, inner: int, heads: int, kv_heads: int, vocabulary: int, *, tied: bool
) -> TextModelDimensions:
    head = 128
    return TextModelDimensions(
        layers=layers,
        hidden=hidden,
        inner=inner,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head,
        vocabulary=vocabulary,
        tied=tied,
    )


def _count_merger_parameters(hidden: int, out: int, *, copies: int = 1) -> int:
    wide = hidden * 4
    return copies * (wide**2 + wide * out)


def _build_qwen25_vision_dimensions(out: int, inner: int = 3420) -> VisionModelDimensions:
    bridge = _count_merger_parameters(1280, out)
    return VisionModelDimensions(
        layers=32, hidden=1280, inner=inner, gated=True, patch=14, full_layers=4, bridge=bridge
    )


def _build_qwen3_vision_dimensions(
    layers: int, hidden: int, inner: int, out: int
) -> VisionModelDimensions:
    bridge = _count_merger_parameters(
        hidden, out, copies=4
    )  # one merger after the last layer, three after earlier layers
    return VisionModelDimensions(
        layers=layers,
        hidden=hidden,
        inner=inner,
        gated=False,
        patch=16,
        full_layers=layers,
        bridge=bridge,
    )


def _build_siglip_vision_dimensions(out: int) -> VisionModelDimensions:
    bridge = 1152 * out + out**2
    return VisionModelDimensions(
        layers=27, hidden=1152, inner=4304, gated=False, patch=14, full_layers=27, bridge=bridge
    )


# Sources: config.json of the published checkpoints.
_KNOWN: Final[
    Mapping[tuple[FamilyName, str], tuple[TextModelDimensions, VisionModelDimensions]]
] = {
    ("qwen2.5-vl", "3b"): (
        _build_text_dimensions(36, 2048, 11008, 16, 2, 151936, tied=True),
        _build_qwen25_vision_dimensions(2048),
    ),
    ("qwen2.5-vl", "7b"): (
        _build_text_dimensions(28, 3584, 18944, 28, 4, 152064, tied=False),
        _build_qwen25_vision_dimensions(3584),
    ),
    ("qwen2.5-vl", "32b"): (
        _build_text_dimensions(64, 5120, 27648, 40, 8, 152064, tied=False),
        _build_qwen25_vision_dimensions(5120, inner=3456),
    ),
    ("qwen2.5-vl", "72b"): (
        _build_text_dimensions(80, 8192, 29568, 64, 8, 152064, tied=False),
        _build_qwen25_vision_dimensions(8192, inner=3456),
    ),
    ("qwen3-vl", "2b"): (
        _build_text_dimensions(28, 2048, 6144, 16, 8, 151936, tied=True),
        _build_qwen3_vision_dimensions(24, 1024, 4096, 2048),
    ),
    ("qwen3-vl", "4b"): (
        _build_text_dimensions(36, 2560, 9728, 32, 8, 151936, tied=True),
        _build_qwen3_vision_dimensions(24, 1024, 4096, 2560),
    ),
    ("qwen3-vl", "8b"): (
        _build_text_dimensions(36, 4096, 12288, 32, 8, 151936, tied=False),
        _build_qwen3_vision_dimensions(27, 1152, 4304, 4096),
    ),
    ("qwen3-vl", "32b"): (
        _build_text_dimensions(64, 5120, 25600, 64, 8, 151936, tied=False),
        _build_qwen3_vision_dimensions(27, 1152, 4304, 5120),
    ),
    ("videollama3", "2b"): (
        _build_text_dimensions(28, 1536, 8960, 12, 2, 151936, tied=True),
        _build_siglip_vision_dimensions(1536),
    ),
    ("videollama3", "7b"): (
        _build_text_dimensions(28, 3584, 18944, 28, 4, 152064, tied=False),
        _build_siglip_vision_dimensions(3584),
    ),
}


def find_model_architecture(name: str, family: FamilyName) -> ModelArchitecture:
    """Return the architecture of a recipe's model: a folder, or a name that contains its size.

    Raises:
        InvalidSettingError: The size of the model is unknown.
    """
    folder = Path(name)
    if (folder / _CONFIG).is_file():
        return read_model_architecture(folder, family)
    for size in re.findall(r"(?<![0-9.])([0-9]+b)(?![a-z])", name.lower()):
        if sizes_of := _KNOWN.get((family, size)):
            source = f"the published {family} of {size.upper()}"
            return ModelArchitecture(text=sizes_of[0], vision=sizes_of[1], known_from=source)
    sizes = ", ".join(size.upper() for known, size in _KNOWN if known == family)
    problem = f"the size of {name!r} is unknown"
    remedy = f"Name a folder with {_CONFIG}, or a {family} whose name contains its size: {sizes}"
    raise InvalidSettingError("model.name", problem, remedy)  # noqa: EM101  the setting's own name


def read_model_architecture(folder: Path, family: FamilyName) -> ModelArchitecture:
    """Read a model's `config.json`; raise `UnreadableSourceError` if damaged or incomplete."""
    file = folder / _CONFIG
    try:
        config = parse_json_object(read_limited_bytes(file, most=RECIPE_BYTES))
        parts = [config.get(f"{part}_config") for part in ("text", "vision")]
        inner, outer = (part if isinstance(part, Mapping) else {} for part in parts)
        text = _parse_text_dimensions({**config, **inner})
        vision = _parse_vision_dimensions(outer, family, text.hidden)
    except InvalidValueError as error:
        raise UnreadableSourceError(str(file), str(error), f"Name a {family} model") from error
    return ModelArchitecture(text=text, vision=vision, known_from=str(file))


def _parse_text_dimensions(config: Mapping[str, Any]) -> TextModelDimensions:
    hidden, heads = (
        _require_config_integer(config, "hidden_size"),
        _require_config_integer(config, "num_attention_heads"),
    )
    return TextModelDimensions(
        layers=_require_config_integer(config, "num_hidden_layers"),
        hidden=hidden,
        inner=_require_config_integer(config, "intermediate_size"),
        heads=heads,
        kv_heads=_require_config_integer(config, "num_key_value_heads"),
        head_dim=_require_config_integer(config, "head_dim")
        if config.get("head_dim")
        else max(1, hidden // heads),
        vocabulary=_require_config_integer(config, "vocab_size"),
        tied=config.get("tie_word_embeddings") is True,
    )


def _parse_vision_dimensions(
    config: Mapping[str, Any], family: FamilyName, out: int
) -> VisionModelDimensions:
    layers = _require_config_integer(config, "depth", "num_hidden_layers")
    hidden = _require_config_integer(config, "hidden_size")
    full = config.get("fullatt_block_indexes")
    deep = config.get("deepstack_visual_indexes")
    bridges = 1 + len(deep) if isinstance(deep, list) else 1
    bridge = _count_merger_parameters(hidden, out, copies=bridges)
    return VisionModelDimensions(
        layers=layers,
        hidden=hidden,
        inner=_require_config_integer(config, "intermediate_size"),
        gated=family == "qwen2.5-vl",
        patch=_require_config_integer(config, "patch_size"),
        full_layers=len(full) if isinstance(full, list) else layers,
        bridge=hidden * out + out**2 if family == "videollama3" else bridge,
    )


def _require_config_integer(config: Mapping[str, Any], *keys: str) -> int:
    value = next((config[key] for key in keys if key in config), None)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
        msg = f"{keys[0]} is {value!r}, no whole number from 1 to {_LARGEST}"
        raise InvalidValueError(msg)
    return value
