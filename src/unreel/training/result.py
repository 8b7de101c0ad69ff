"""Result of a training."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from unreel.core.estimate import Measured

Ended = Literal["done", "early", "asked"]
"""End after all steps, by patience, or by a stop request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Result of a training."""

    folder: Path
    model: Path | None
    """Folder of the model; `None` if the training was stopped."""
    step: int
    """Step of the model; the last step if there is none."""
    n_steps: int
    loss: float | None
    """Loss of the last step."""
    held_out_loss: float | None
    ended: Ended
    went_on_from: int | None
    """Step of the checkpoint from which the training resumed."""
    unshown: dict[str, list[str]] = field(default_factory=dict)
    """Name, failure reason and detail of the examples that could not be read."""
    gain: Measured | None = None
    """With `[reward]`: increase of the reward on held-out questions."""
