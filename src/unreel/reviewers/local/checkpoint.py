"""A model in a local directory: its family, input format and identity. No weights are loaded."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.identity import digest
from unreel.core.small_documents import RECIPE_BYTES, parse_json, read_bytes
from unreel.core.weight_files import INDEX_FILES, is_weight_file, require_safe_index
from unreel.reviewers.endpoint.families import get_family
from unreel.reviewers.local.input_format import FamilyName, Form, InputSpec, read_taught

CONFIG: Final = "config.json"
ADAPTER: Final = "adapter_config.json"
_WEIGHTS: Final = "*.safetensors"
_ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
"""Without this file peft loads `adapter_model.bin`, whatever other safetensors there are."""
_NAMED_WEIGHTS: Final = "transformers_weights"
"""Setting of a model that makes transformers load another file than usual."""
_CODED: Final = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
"""Weight formats that can contain code; they are ignored next to safetensors."""
_SHOWN_BY: Final = (
    "chat_template.jinja",
    "chat_template.json",
    CONFIG,
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
)
"""Files besides the weights that affect the input of the model."""
_TYPES: Final[dict[str, FamilyName]] = {
    "qwen2_5_vl": "qwen2.5-vl",
    "qwen3_vl": "qwen3-vl",
    "video_llama_3": "videollama3",
}
_INNER: Final = frozenset({"checkpoints", "model"})
"""Folders of a training that say nothing of whose they are."""
_SHORT: Final = 12
MAX_TOKENS: Final = 2048
"""Default maximum number of tokens of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCheckpoint:
    """A local model with its input format."""

    folder: Path
    taught: InputSpec
    is_ours: bool
    """Whether it declares how it was taught. Another model is asked like one behind a server."""

    @property
    def name(self) -> str:
        """Return the display name with a digest of the weights and of the input settings."""
        return f"local/{get_display_name(self.folder)}@{self.digest[:_SHORT]}"

    def asked_name(self, *, max_tokens: int, box_space: str | None) -> str:
        """Return the name as a reviewer; settings that differ from their defaults are part of it."""
        changed = {"max_tokens": (max_tokens, MAX_TOKENS), "box_space": (box_space, None)}
        label = ",".join(f"{name}={now}" for name, (now, usual) in changed.items() if now != usual)
        return f"{self.name}?{label}" if label else self.name

    @property
    def digest(self) -> str:
        """Return a digest of everything that affects the answers, independent of the model's location."""
        base = self.base
        return _compute_checkpoint_digest(
            self.folder, self.taught, "" if base is None else digest_weights(base)
        )

    @property
    def base(self) -> Path | None:
        """Return the directory of an adapter's base model; `None` for a whole model."""
        if self.taught.base is None:
            return None
        beside = self.folder / self.taught.base
        return beside if beside.is_dir() else locate_model(self.taught.base)


def read_checkpoint(folder: str | Path, *, form: Form | None = None) -> LocalCheckpoint:
    """Read the checkpoint in `folder`, to be asked in `form`; the default is its training form.

    A checkpoint that declares no training form is asked on frames by default.

    Raises:
        UnreadableSourceError: There is no model that is safe to load.
        InvalidSettingError: The model was trained in the other form, or on another base model.
    """
    place = locate_model(folder)
    require_weights(place)
    taught = read_taught(place)
    if taught is None:
        taught = _build_default_input(place, form or "frames")
        return LocalCheckpoint(folder=place, taught=taught, is_ours=False)
    if form is not None and form != taught.input:
        problem = f"{place.name} was taught on {taught.input} and would be asked on {form}"
        setting = "show"
        raise InvalidSettingError(setting, problem, f"Leave it out, or write {taught.input}")
    found = LocalCheckpoint(folder=place, taught=taught, is_ours=True)
    base = found.base
    if base is not None:
        require_weights(base)
        _require_base(found, base)
    return found


def locate_model(name: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model: itself, or the cache folder of a fetched model.

    Raises:
        UnreadableSourceError: Neither exists.
    """
    place = Path(name).expanduser()
    if place.is_dir():
        return place
    remedy = "Name a folder with a model's weights, tokenizer and processor"
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ModuleNotFoundError:
        raise UnreadableSourceError(str(name), "no such folder", remedy) from None
    try:
        return Path(snapshot_download(str(name), revision=revision, local_files_only=True))
    except LocalEntryNotFoundError as error:
        remedy = f"{remedy}, or fetch it: hf download {name}"
        raise UnreadableSourceError(str(name), "no such folder", remedy) from error
    except HFValidationError as error:
        raise UnreadableSourceError(str(name), "no such folder", remedy) from error


@cache
def _hash_file_content(file: Path, _size: int, _changed_ns: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def digest_weights(folder: Path) -> str:
    """Compute a digest of the weights in `folder`, independent of file names."""
    return digest("weights", *sorted(_get_file_digest(file) for file in folder.glob(_WEIGHTS)))


def _get_file_digest(file: Path) -> str:
    stat = file.stat()
    return _hash_file_content(file.resolve(), stat.st_size, stat.st_mtime_ns)


def _compute_checkpoint_digest(folder: Path, taught: InputSpec, base: str) -> str:
    shown_by = [
        part
        for name in _SHOWN_BY
        if (folder / name).is_file()
        for part in (name, _get_file_digest(folder / name))
    ]
    told = taught.model_dump_json(exclude={"base", "base_digest"})
    adapter = _format_adapter_config(folder) if base else ""
    return digest("checkpoint", told, digest_weights(folder), base, adapter, *shown_by)


def _format_adapter_config(folder: Path) -> str:
    told = read_config(folder, ADAPTER)
    return json.dumps({k: v for k, v in told.items() if k != "base_model_name_or_path"})


def read_config(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    """Read the config of a model or adapter without changes; empty if it is not a JSON object."""
    told = parse_json(read_bytes(folder / name, most=RECIPE_BYTES))
    return told if isinstance(told, dict) else {}


def require_weights(folder: Path) -> None:
    """Raise for a folder without weights that can be loaded without running code.

    Raises:
        UnreadableSourceError: There are none, or a file names weights of another form or folder.
    """
    for index in sorted(folder.glob(INDEX_FILES)):
        require_safe_index(index)
    named = read_config(folder).get(_NAMED_WEIGHTS) if (folder / CONFIG).is_file() else None
    if named is not None and not is_weight_file(str(named).removesuffix(".index.json")):
        problem = f"names {str(named)[:200]!a} as weights, no safetensors file of its folder"
        remedy = f"Remove {_NAMED_WEIGHTS} from it where you trust the folder"
        raise UnreadableSourceError(str(folder / CONFIG), problem, remedy)
    if any(folder.glob(_ADAPTER_WEIGHTS if (folder / ADAPTER).is_file() else _WEIGHTS)):
        return
    problem, remedy = "no weights", "Name a folder with a model's weights as safetensors"
    if any(found for pattern in _CODED for found in folder.glob(pattern)):
        problem = "its weights are in a form that can hold code"
        remedy = "Convert them to safetensors where you trust them"
    raise UnreadableSourceError(str(folder), problem, remedy)


def _require_base(found: LocalCheckpoint, base: Path) -> None:
    told = found.taught.base_digest
    if told is not None and told != digest_weights(base):
        problem = f"{found.folder.name} is an adapter of other weights than those in {base}"
        setting, remedy = "model", "Name the model that it was trained on as `base` in unreel.json"
        raise InvalidSettingError(setting, problem, remedy)


def _build_default_input(folder: Path, form: Form) -> InputSpec:
    kind = read_config(folder).get("model_type") if (folder / CONFIG).is_file() else None
    name = _TYPES.get(str(kind))
    if name is None:
        problem = f"a model of type {kind!r}" if kind else f"no {CONFIG}"
        remedy = f"Name a model of one of these types: {', '.join(_TYPES)}"
        raise UnreadableSourceError(str(folder), problem, remedy)
    return InputSpec(family=name, input=form, box_space=get_family(name).boxes)


def get_display_name(folder: Path) -> str:
    """Return the display name: its folder, with the training's if it has no name of its own."""
    return "-".join(reversed(list(_iter_name_parts(folder.resolve())))) or "model"


def _iter_name_parts(folder: Path) -> Iterator[str]:
    for place in (folder, *folder.parents):
        if place.name not in _INNER:
            yield place.name
            if not place.name.startswith("step-"):
                return
