"""Start settings of a training, compared before it resumes, and the result of a training."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Measured
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.training.checkpoints import TrainingCheckpoint, TrainingCheckpointStore

Ended = Literal["done", "early", "asked"]
"""Reason of the end: all steps are done, patience is over, or a stop was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Result of a training."""

    folder: Path
    model: Path | None
    """Folder of the model; `None` if the training was stopped."""
    step: int
    """Step of the model; the last step without a model."""
    n_steps: int
    loss: float | None
    """Loss of the last step."""
    held_out_loss: float | None
    ended: Ended
    went_on_from: int | None
    """Step of the checkpoint from which the training resumed; `None` if it did not."""
    unshown: dict[str, list[str]] = field(default_factory=dict)
    """Name, failure reason and detail of each example that could not be read, by key."""
    gain: Measured | None = None
    """Increase of the reward on held-out questions, only after a GRPO training."""


FILE = "training.json"
_MAX_BYTES = 4 << 20
_FREE = ("watch.", "optimise.workers", "devices.", "published.", "reward.keep_from")
"""Prefixes of the settings that may change before a resume; so may the paths of benchmarks.
`data.N.expected` and `reward.keep_from`, in stored manifests only, have no effect."""
_MAX_LISTED = 6

Going = Literal["resume", "fresh", "either"]
"""Whether a training must resume (`resume`), must start again (`fresh`), or either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingManifest:
    """Settings and hashes at the start of a training, which determine its result."""

    recipe: Mapping[str, Any]
    data: str
    """Hash of the examples, of their answers, and of which examples are held out."""
    base: str
    """Hash of the initial weights."""
    n_devices: int

    def differences(self, earlier_manifest: "TrainingManifest") -> Iterator[str]:
        """Yield each setting that differs from the manifest `earlier_manifest`, as text."""
        old, new = (
            dict(_iter_flat_settings(earlier_manifest.recipe)),
            dict(_iter_flat_settings(self.recipe)),
        )
        for key in sorted({*old, *new}):
            is_free = key.startswith(_FREE) or (
                key.startswith("data.") and (key.endswith("benchmark") or ".expected." in key)
            )
            if not is_free and old.get(key) != new.get(key):
                yield f"{key} was {old.get(key)!r} and is {new.get(key)!r}"
        for name, text in {
            "data": "the examples, their answers or the holdout changed",
            "base": "the model that it starts from has other weights",
        }.items():
            if getattr(earlier_manifest, name) != getattr(self, name):
                yield text
        if earlier_manifest.n_devices != self.n_devices:
            yield f"the training ran on {earlier_manifest.n_devices} devices and is to run on {self.n_devices}"


def read_training_manifest(folder: Path) -> TrainingManifest | None:
    """Read a training's manifest, `None` without one; raise `UnreadableSourceError` if damaged."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return TrainingManifest(**parse_json_object(read_limited_bytes(path, most=_MAX_BYTES)))
    except (InvalidValueError, TypeError) as error:
        raise UnreadableSourceError(
            str(path), "damaged", "Name another --out, or start again with --fresh"
        ) from error


def prepare_training_folder(
    manifest: TrainingManifest, folder: Path, *, going: Going
) -> TrainingCheckpoint | None:
    """Prepare the directory of a training; return the checkpoint to resume from, or `None` if new.

    Raise `UnreadableSourceError` if no checkpoint can be resumed, the settings differ from
    those of the existing training, or the folder has files of another program. Nothing was changed.
    """
    checkpoints = TrainingCheckpointStore(folder)
    _require_no_foreign_files(folder)
    before = None if going == "fresh" else read_training_manifest(folder)
    newest = None if before is None else checkpoints.newest()
    if before is not None and (newest is not None or checkpoints.model() is not None):
        changes = list(manifest.differences(before))
        if changes:
            more = f"; and {len(changes) - _MAX_LISTED} more" if len(changes) > _MAX_LISTED else ""
            raise UnreadableSourceError(
                str(folder),
                f"another training was begun there: {'; '.join(changes[:_MAX_LISTED])}{more}",
                "Change it back, name another --out, or start again with --fresh",
            )
    elif going == "resume":
        raise UnreadableSourceError(
            str(folder),
            "no complete checkpoint",
            "Leave --resume away to begin, or name the folder of a training that was begun",
        )
    checkpoints.clear_drafts()
    if newest is None and (going == "fresh" or checkpoints.model() is None):
        checkpoints.clear()
    text = json.dumps(
        {name: getattr(manifest, name) for name in TrainingManifest.__slots__}, indent=1
    )
    OutputDirectory(folder, published=True).write(FILE, text.encode())
    return newest


def _require_no_foreign_files(folder: Path) -> None:
    """Raise if the folder has files of other programs that a training would delete."""
    if (folder / FILE).exists():
        return
    for name in ("model", "checkpoints"):
        if (folder / name).exists():
            raise UnreadableSourceError(
                str(folder),
                f"contains {name!r}, which was not written by unreel",
                "Name another --out",
            )


def _iter_flat_settings(values: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(values, Mapping):
        parts = [(str(key), value) for key, value in values.items()]
    elif isinstance(values, list | tuple):
        parts = [(str(i), value) for i, value in enumerate(values)]
    else:
        yield above, values
        return
    for key, value in parts:
        yield from _iter_flat_settings(value, f"{above}.{key}" if above else key)
