"""Atomic checkpoints: written to a draft folder, synchronised to disk, sealed, then renamed.

A seal lists every file with its hash. It is the last file written before a draft is renamed.
A training that is killed while it writes therefore leaves only an unused draft. If a checkpoint
was damaged later, the one before it is used.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidValueError, UnreadableSourceError, UnsafeTargetError
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import PART, OutputDirectory, open_regular_user_file
from unreel.core.safe_names import require_relative_path

SEAL = "seal.json"
INNER = "training"
"""Subfolder of a checkpoint with the training state: optimiser, schedule and random states."""
_SEAL_BYTES = 4 << 20
_STEPS = "checkpoints"
_NAME = re.compile(r"step-(\d{6,12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCheckpoint:
    """A checkpoint folder of a training with weights and a valid seal."""

    path: Path
    step: int


class TrainingCheckpointStore:
    """The checkpoints and the final model in the directory of one training.

    Args:
        folder: Directory of the training; created if missing.
    """

    def __init__(self, folder: Path) -> None:
        # Weights are shared, so the files follow the permissions of the folder.
        self._folder = OutputDirectory(folder, published=True)

    def draft(self, name: str) -> Path:
        """Return the draft directory of the checkpoint `name` (`step-000100` or `model`)."""
        return self._folder.root / _get_draft_path(name)

    def begin(self, name: str, *, inner: str = "") -> Path:
        """Create the draft folder of checkpoint `name` with `inner`, replacing a leftover; return its path."""
        self._folder.remove_folder(_get_draft_path(name))
        self._folder.make(f"{_get_draft_path(name)}/{inner}".rstrip("/"))
        return self.draft(name)

    def finish(self, name: str, *, step: int) -> TrainingCheckpoint:
        """Seal the draft of the checkpoint `name` and move it to its final path; an older one is replaced."""
        draft, path = _get_draft_path(name), _get_checkpoint_path(name)
        self._folder.sync_to_disk(draft)
        files = self._folder.files(draft)
        seal = {"step": step, "files": {file: self._hash(f"{draft}/{file}") for file in files}}
        self._folder.write(f"{draft}/{SEAL}", json.dumps(seal, indent=1).encode())
        self._folder.sync_to_disk(draft)
        self._folder.remove_folder(path)
        self._folder.rename(draft, name)
        self._folder.sync_to_disk(path)
        return TrainingCheckpoint(path=self._folder.root / path, step=step)

    def whole(self) -> Iterator[TrainingCheckpoint]:
        """Yield the step checkpoints with a valid seal, newest first; each is verified when it is reached."""
        for name in reversed(self._named()):
            checkpoint = read_sealed_checkpoint(self._folder.root / _get_checkpoint_path(name))
            if checkpoint is not None:
                yield checkpoint

    def newest(self) -> TrainingCheckpoint | None:
        """Return the newest checkpoint with a valid seal; `None` if missing."""
        return next(self.whole(), None)

    def at(self, step: int) -> TrainingCheckpoint | None:
        """Return the checkpoint of `step` if its seal is valid, else `None`."""
        return read_sealed_checkpoint(
            self._folder.root / _get_checkpoint_path(format_checkpoint_name(step))
        )

    def model(self) -> TrainingCheckpoint | None:
        """Return the final model of the training; `None` if it is missing or its seal is not valid."""
        return read_sealed_checkpoint(self._folder.root / "model")

    def prune(self, *, keep: int, best: int | None) -> None:
        """Delete all step checkpoints except the newest `keep` and the one of step `best`."""
        names = self._named()
        retained = {*names[-keep:], *([] if best is None else [format_checkpoint_name(best)])}
        for name in names:
            if name not in retained:
                self._folder.remove_folder(_get_checkpoint_path(name))

    def clear(self) -> None:
        """Delete all step checkpoints and the final model."""
        for name in (_STEPS, "model"):
            self._folder.remove_folder(name)

    def clear_drafts(self) -> None:
        """Delete the drafts that a killed training left behind."""
        for above in ("", f"{_STEPS}/"):
            root = self._folder.root / above
            for path in sorted(root.glob(f"{PART}*")) if root.is_dir() else ():
                if path.is_dir() and not path.is_symlink():
                    self._folder.remove_folder(f"{above}{path.name}")

    def _named(self) -> list[str]:
        root = self._folder.root / _STEPS
        names = [path.name for path in root.iterdir()] if root.is_dir() else []
        return sorted((n for n in names if _NAME.fullmatch(n)), key=lambda n: int(n[5:]))

    def _hash(self, name: str) -> str:
        with self._folder.read(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def format_checkpoint_name(step: int) -> str:
    """Return the folder name of a step's checkpoint, such as `step-000100`."""
    return f"step-{step:06d}"


def read_sealed_checkpoint(folder: Path) -> TrainingCheckpoint | None:
    """Read the checkpoint in `folder`; return `None` if a file is missing or differs from the seal."""
    try:
        seal = read_checkpoint_seal(folder)
        for name, sha256 in seal["files"].items():
            with open_regular_user_file(folder / require_relative_path(name)) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    return None
        return TrainingCheckpoint(path=folder, step=int(seal["step"]))
    except (OSError, LookupError, TypeError, ValueError, UnsafeTargetError):
        return None


def read_checkpoint_seal(folder: Path) -> dict[str, Any]:
    """Read a checkpoint's seal, not its files; raise `UnreadableSourceError` if missing or damaged."""
    remedy = "Name a folder below checkpoints/, or model/, of a training"
    data = read_limited_bytes(folder / SEAL, most=_SEAL_BYTES, remedy=remedy)
    try:
        return dict(parse_json_object(data))
    except InvalidValueError as error:
        raise UnreadableSourceError(str(folder / SEAL), str(error), remedy) from error


def _get_checkpoint_path(name: str) -> str:
    return f"{_STEPS}/{name}" if _NAME.fullmatch(name) else name


def _get_draft_path(name: str) -> str:
    above, _, last = _get_checkpoint_path(name).rpartition("/")
    return f"{above}/{PART}{last}" if above else f"{PART}{last}"
