"""Metadata of peft adapters that a server needs, read without loading tensors."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.small_documents import parse_object, read_bytes
from unreel.reviewers.local.input_format import InputSpec, read_taught

SETTING: Final = "--adapter"
_CONFIG_BYTES: Final = 4 << 20
_HEADER_BYTES: Final = 64 << 20
_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes as the most that an adapter's rank may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAdapter:
    """A trained adapter that is served next to its base, unmerged."""

    name: str
    folder: Path
    rank: int
    sees: bool
    """Whether it changes the part that looks at frames."""
    taught: InputSpec | None


def read_adapter(name: str, folder: Path) -> ServedAdapter:
    """Read the adapter in `folder`, to be served under `name`.

    Raises:
        UnreadableSourceError: The directory has no adapter.
        InvalidSettingError: vLLM does not support this kind of adapter.
    """
    remedy = "Name a folder that peft wrote: adapter_config.json and adapter_model.safetensors"
    config = read_object(folder / "adapter_config.json", remedy)
    rank = config.get("r")
    patterns = config.get("rank_pattern") or {}
    ranks = [rank, *(patterns.values() if isinstance(patterns, Mapping) else ())]
    if not all(isinstance(each, int) and each > 0 for each in ranks):
        raise UnreadableSourceError(str(folder), f"a rank of {rank!r}", remedy)
    for unknown in ("modules_to_save", "use_dora", "lora_bias"):
        if config.get(unknown):
            problem = f"{folder}: vLLM does not serve adapters with {unknown}"
            raise InvalidSettingError(
                SETTING, problem, "Merge it into its base, or ask it with local/"
            )
    tensors = _read_tensor_names(folder / "adapter_model.safetensors", remedy)
    return ServedAdapter(
        name=name,
        folder=folder,
        rank=max(ranks),
        sees=any(".visual." in tensor or ".vision_" in tensor for tensor in tensors),
        taught=read_taught(folder),
    )


def adapter_arguments(adapters: Sequence[ServedAdapter]) -> Sequence[str]:
    """Return vLLM's arguments for serving `adapters` with their base."""
    if not adapters:
        return ()
    most = max(adapter.rank for adapter in adapters)
    fitting = [rank for rank in _RANKS if rank >= most]
    if not fitting:
        problem = f"an adapter of rank {most}, and vLLM takes {_RANKS[-1]} at most"
        raise InvalidSettingError(SETTING, problem, "Merge it into its base")
    modules = [json.dumps({"name": a.name, "path": str(a.folder.resolve())}) for a in adapters]
    return (
        "--enable-lora",
        *("--max-lora-rank", str(fitting[0]), "--max-loras", str(len(adapters))),
        *(("--enable-tower-connector-lora",) if any(a.sees for a in adapters) else ()),
        *("--lora-modules", *modules),
    )


def read_object(file: Path, remedy: str) -> Mapping[str, Any]:
    """Read the JSON object in a file of a model's directory."""
    try:
        return parse_object(read_bytes(file, most=_CONFIG_BYTES, remedy=remedy))
    except InvalidValueError as error:
        raise UnreadableSourceError(str(file), str(error), remedy) from error


def _read_tensor_names(file: Path, remedy: str) -> list[str]:
    """Return the declared names in a file of tensors."""
    try:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = parse_object(opened.read(min(length, _HEADER_BYTES)))
    except (OSError, struct.error, InvalidValueError) as error:
        raise UnreadableSourceError(str(file), "no tensors as safetensors", remedy) from error
    return [*header]
