"""A model or adapter in a local directory: family, input format and identity. No weights are loaded."""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from unreel.core.content_ids import digest
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    MachineError,
    UnreadableSourceError,
)
from unreel.core.input_files import (
    INDEX_FILES,
    RECIPE_BYTES,
    is_safetensors_name,
    parse_json,
    parse_json_object,
    read_limited_bytes,
    require_safe_weight_index,
)
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition
from unreel.core.registry import needs_extra
from unreel.recipes.validation import (
    MAX_PARTS,
    Count,
    MaxTokens,
    RecipeSection,
    Text,
    validate_recipe_sections,
)
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.endpoint.model_families import get_model_family

FILE = "unreel.json"

Form = Literal["frames", "video"]
"""Input form: single frames, each after its timestamp, or one video with the processor's own timestamps."""
FamilyName = Literal["qwen2.5-vl", "qwen3-vl", "videollama3"]
"""Architectures that can be trained and run locally, named as in `reviewers.endpoint.model_families`."""


class ProtocolTrainingCondition(RecipeSection):
    """A protocol that a checkpoint was trained on, and the condition of its training questions."""

    protocol: Text
    version: Count
    condition: ConditionSection


class CheckpointInputSpec(RecipeSection):
    """Input format of a checkpoint: all settings that decide what it sees of a question.

    The same weights with another form count as another model.
    """

    family: FamilyName
    input: Form
    box_space: Text
    """Coordinate convention of its boxes: `model-input`, `permille`, `unit` or `pixel`."""
    instruments: Annotated[tuple[ProtocolTrainingCondition, ...], Field(max_length=MAX_PARTS)] = ()
    base: Text | None = None
    """Base model of an adapter: a folder, also relative to the adapter's, or a name on the Hugging Face Hub."""
    base_digest: Text | None = None
    """Digest of the weights of the base model."""
    max_tokens: MaxTokens | None = None
    """Token limit of its answers in training, which is the default limit of its questions."""

    def condition(self, protocol: str) -> Condition | None:
        """Return the condition in which the checkpoint was trained on `protocol`; `None` if it was not."""
        for input_spec in self.instruments:
            if input_spec.protocol == protocol:
                return input_spec.condition.as_condition()
        return None


def read_checkpoint_input_spec(folder: Path) -> CheckpointInputSpec | None:
    """Read the input format of the checkpoint in `folder`; `None` if unreel did not train it."""
    file = folder / FILE
    if not file.exists():
        return None
    return validate_recipe_sections(
        CheckpointInputSpec, parse_json(read_limited_bytes(file, most=RECIPE_BYTES))
    )


def write_checkpoint_input_spec(input_spec: CheckpointInputSpec, folder: Path) -> None:
    """Write the input format of a checkpoint to a file in its folder."""
    text = input_spec.model_dump_json(indent=2) + "\n"
    OutputDirectory(folder.absolute(), published=True).write(FILE, text.encode())


SETTING = "--adapter"
_CONFIG_BYTES = 4 << 20
_HEADER_BYTES = 64 << 20
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAdapter:
    """A trained adapter that vLLM serves together with its base model, without merging."""

    name: str
    folder: Path
    rank: int
    sees: bool
    """Whether the adapter changes the vision part of the model."""
    taught: CheckpointInputSpec | None


def read_served_adapter(name: str, folder: Path) -> ServedAdapter:
    """Read the adapter in `folder`, to be served under `name`.

    Raise `UnreadableSourceError` if the directory has no adapter, or `InvalidSettingError` if vLLM
    does not support this kind of adapter.
    """
    remedy = "Name a folder that peft wrote: adapter_config.json and adapter_model.safetensors"
    config = read_model_json(folder / "adapter_config.json", remedy)
    rank = config.get("r")
    patterns = config.get("rank_pattern") or {}
    ranks = [rank, *(patterns.values() if isinstance(patterns, Mapping) else ())]
    if not all(isinstance(r, int) and r > 0 for r in ranks):
        raise UnreadableSourceError(str(folder), f"a rank of {rank!r}", remedy)
    for unknown in ("modules_to_save", "use_dora", "lora_bias"):
        if config.get(unknown):
            raise InvalidSettingError(
                SETTING,
                f"{folder}: vLLM does not serve adapters with {unknown}",
                "Merge it into its base, or ask it with local/",
            )
    file = folder / "adapter_model.safetensors"
    try:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = parse_json_object(opened.read(min(length, _HEADER_BYTES)))
    except (OSError, struct.error, InvalidValueError) as error:
        raise UnreadableSourceError(str(file), "no tensors as safetensors", remedy) from error
    tensors = [*header]
    return ServedAdapter(
        name=name,
        folder=folder,
        rank=max(ranks),
        sees=any(".visual." in tensor or ".vision_" in tensor for tensor in tensors),
        taught=read_checkpoint_input_spec(folder),
    )


def build_adapter_arguments(adapters: Sequence[ServedAdapter]) -> Sequence[str]:
    """Return vLLM's arguments for serving `adapters` with their base."""
    if not adapters:
        return ()
    max_rank = max(adapter.rank for adapter in adapters)
    fitting = [rank for rank in _RANKS if rank >= max_rank]
    if not fitting:
        raise InvalidSettingError(
            SETTING,
            f"an adapter of rank {max_rank}, and vLLM takes {_RANKS[-1]} at most",
            "Merge it into its base",
        )
    modules = [json.dumps({"name": a.name, "path": str(a.folder.resolve())}) for a in adapters]
    return (
        "--enable-lora",
        *("--max-lora-rank", str(fitting[0]), "--max-loras", str(len(adapters))),
        *(("--enable-tower-connector-lora",) if any(a.sees for a in adapters) else ()),
        *("--lora-modules", *modules),
    )


def read_model_json(file: Path, remedy: str) -> Mapping[str, Any]:
    """Read the JSON object in a file of a model's directory; `remedy` is the advice in an error.

    Raise `UnreadableSourceError` if the file is missing, too large or no JSON object.
    """
    try:
        return parse_json_object(read_limited_bytes(file, most=_CONFIG_BYTES, remedy=remedy))
    except InvalidValueError as error:
        raise UnreadableSourceError(str(file), str(error), remedy) from error


CONFIG = "config.json"
ADAPTER = "adapter_config.json"
_WEIGHTS = "*.safetensors"
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
"""Weights file of an adapter; if it is missing, peft loads `adapter_model.bin`, even next to other safetensors."""
_NAMED_WEIGHTS = "transformers_weights"
"""Key of a model's config that makes transformers load another weights file than the default."""
_CODED = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
"""Weight formats that can contain code; they are ignored next to safetensors."""
_SHOWN_BY = (
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
_TYPES: dict[str, FamilyName] = {
    "qwen2_5_vl": "qwen2.5-vl",
    "qwen3_vl": "qwen3-vl",
    "video_llama_3": "videollama3",
}
_INNER = frozenset({"checkpoints", "model"})
"""Names of folders within a training run that are left out of the display name."""
_SHORT = 12
MAX_TOKENS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCheckpoint:
    """A model in a local folder, with its input format."""

    folder: Path
    taught: CheckpointInputSpec
    is_ours: bool
    """Whether its folder declares its training input; otherwise the family's defaults apply, as for a served model."""

    @property
    def name(self) -> str:
        """Return the display name with a digest of the weights and of the input settings."""
        return f"local/{get_checkpoint_display_name(self.folder)}@{self.digest[:_SHORT]}"

    @property
    def max_tokens(self) -> int:
        """Return the default maximum number of tokens of an answer."""
        return self.taught.max_tokens or MAX_TOKENS

    def reviewer_name(self, *, max_tokens: int, box_space: str | None) -> str:
        """Return the name of the checkpoint as a reviewer, with settings that differ from their defaults."""
        changed = {"max_tokens": (max_tokens, self.max_tokens), "box_space": (box_space, None)}
        label = ",".join(f"{name}={new}" for name, (new, usual) in changed.items() if new != usual)
        return f"{self.name}?{label}" if label else self.name

    @property
    def digest(self) -> str:
        """Return a digest of everything that affects the answers, independent of the model's location."""
        base = self.base
        return _compute_checkpoint_digest(
            self.folder, self.taught, "" if base is None else compute_weights_digest(base)
        )

    @property
    def base(self) -> Path | None:
        """Return the folder of an adapter's base model; `None` for a complete model."""
        if self.taught.base is None:
            return None
        beside = self.folder / self.taught.base
        return beside if beside.is_dir() else find_model_folder(self.taught.base)


def read_checkpoint(folder: str | Path, *, form: Form | None = None) -> LocalCheckpoint:
    """Read the checkpoint in `folder`, which will receive clips in the input form `form`.

    The default is the form of its training, or frames if the checkpoint does not declare one. Raise
    `UnreadableSourceError` if there is no model that is safe to load, or `InvalidSettingError` if
    the model was trained with the other form, or on another base model.
    """
    path = find_model_folder(folder)
    require_safe_weights(path)
    input_spec = read_checkpoint_input_spec(path)
    if input_spec is None:
        input_spec = _build_default_input_spec(path, form or "frames")
        return LocalCheckpoint(folder=path, taught=input_spec, is_ours=False)
    if form is not None and form != input_spec.input:
        raise InvalidSettingError(
            "show",
            f"{path.name} was trained on {input_spec.input}, not on {form}",
            f"Leave it out, or write {input_spec.input}",
        )
    checkpoint = LocalCheckpoint(folder=path, taught=input_spec, is_ours=True)
    base = checkpoint.base
    if base is not None:
        require_safe_weights(base)
        expected = checkpoint.taught.base_digest
        if expected is not None and expected != compute_weights_digest(base):
            raise InvalidSettingError(
                "model",
                f"{checkpoint.folder.name} is an adapter of other weights than those in {base}",
                "Name the model that it was trained on as `base` in unreel.json",
            )
    return checkpoint


def find_model_folder(name: str | Path, revision: str | None = None) -> Path:
    """Return a model's own or cached folder; raise `UnreadableSourceError` if neither exists."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    remedy = "Name a folder with a model's weights, tokenizer and processor"
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ModuleNotFoundError:
        raise UnreadableSourceError(str(name), "no such folder", remedy) from None
    try:
        return Path(snapshot_download(str(name), revision=revision, local_files_only=True))
    except LocalEntryNotFoundError as error:
        raise UnreadableSourceError(
            str(name), "no such folder", f"{remedy}, or fetch it: hf download {name}"
        ) from error
    except HFValidationError as error:
        raise UnreadableSourceError(str(name), "no such folder", remedy) from error


def download_checkpoint(hub_id: str, revision: str | None) -> Path:
    """Return the folder of a checkpoint in the cache of the hub; download what is missing.

    Only text files and safetensors are downloaded. Raise `UnreadableSourceError` if the hub gives no
    access, or `MachineError` if it cannot be reached.
    """
    with needs_extra("local"):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
    try:
        return Path(
            snapshot_download(
                hub_id,
                revision=revision,
                allow_patterns=["*.json", "*.jinja", "*.txt", "*.model", _WEIGHTS],
            )
        )
    except GatedRepoError as error:
        raise UnreadableSourceError(
            hub_id,
            "the owner gives access only to accounts that accepted the terms",
            "Accept them on its page, then set HF_TOKEN to a token of that account",
        ) from error
    except RepositoryNotFoundError as error:
        raise UnreadableSourceError(
            hub_id, "the hub has no such model", "Check HF_TOKEN"
        ) from error
    except OSError as error:  # errors of connections are such
        raise MachineError(
            f"cannot download {hub_id} ({type(error).__name__})",
            "Run the command again: complete files are kept",
        ) from error


@cache
def _hash_file_content(file: Path, _size: int, _changed_ns: int) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def compute_weights_digest(folder: Path) -> str:
    """Compute a digest of the weights in `folder`, independent of file names."""
    return digest("weights", *sorted(_get_file_digest(file) for file in folder.glob(_WEIGHTS)))


def _get_file_digest(file: Path) -> str:
    stat = file.stat()
    return _hash_file_content(file.resolve(), stat.st_size, stat.st_mtime_ns)


def _compute_checkpoint_digest(folder: Path, input_spec: CheckpointInputSpec, base: str) -> str:
    shown_by = [
        part
        for name in _SHOWN_BY
        if (folder / name).is_file()
        for part in (name, _get_file_digest(folder / name))
    ]
    spec = input_spec.model_dump_json(exclude={"base", "base_digest", "max_tokens"})
    config = read_model_config(folder, ADAPTER) if base else {}
    config.pop("base_model_name_or_path", None)
    adapter = json.dumps(config) if base else ""
    return digest("checkpoint", spec, compute_weights_digest(folder), base, adapter, *shown_by)


def read_model_config(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    """Read the JSON config of a model or adapter; return an empty dict if it is no JSON object."""
    config = parse_json(read_limited_bytes(folder / name, most=RECIPE_BYTES))
    return config if isinstance(config, dict) else {}


def require_safe_weights(folder: Path) -> None:
    """Raise if `folder` has no weights that can be loaded without running code.

    Raise `UnreadableSourceError` if there are no safetensors files, or a config names weights of
    another format or folder.
    """
    for index in sorted(folder.glob(INDEX_FILES)):
        require_safe_weight_index(index)
    named = read_model_config(folder).get(_NAMED_WEIGHTS) if (folder / CONFIG).is_file() else None
    if named is not None and not is_safetensors_name(str(named).removesuffix(".index.json")):
        raise UnreadableSourceError(
            str(folder / CONFIG),
            f"names {str(named)[:200]!a} as weights, no safetensors file of its folder",
            f"Remove {_NAMED_WEIGHTS} from it if you trust the folder",
        )
    if any(folder.glob(_ADAPTER_WEIGHTS if (folder / ADAPTER).is_file() else _WEIGHTS)):
        return
    problem, remedy = "no weights", "Name a folder with a model's weights as safetensors"
    if any(file for pattern in _CODED for file in folder.glob(pattern)):
        problem = "the weights are in a format that can contain code"
        remedy = "Convert them to safetensors if you trust them"
    raise UnreadableSourceError(str(folder), problem, remedy)


def _build_default_input_spec(folder: Path, form: Form) -> CheckpointInputSpec:
    kind = read_model_config(folder).get("model_type") if (folder / CONFIG).is_file() else None
    name = _TYPES.get(str(kind))
    if name is None:
        raise UnreadableSourceError(
            str(folder),
            f"a model of type {kind!r}" if kind else f"no {CONFIG}",
            f"Name a model of one of these types: {', '.join(_TYPES)}",
        )
    return CheckpointInputSpec(family=name, input=form, box_space=get_model_family(name).boxes)


def get_checkpoint_display_name(folder: Path) -> str:
    """Return the folder's name, after the training's for `step-100`; skip `model`, `checkpoints`."""
    names: list[str] = []
    resolved = folder.resolve()
    for parent in (resolved, *resolved.parents):
        if parent.name not in _INNER:
            names.insert(0, parent.name)
            if not parent.name.startswith("step-"):
                break
    return "-".join(names) or "model"
