"""Number of operations of a training.

- The text part: 6 x parameters x tokens where it learns (2 forwards, 4 backwards), 4 where an adapter on it
  does (nothing is worked out for frozen weights); the part that sees: 6 x parameters x patches where it
  learns, 2 where it is frozen.
- Attention: 12 x layers x width x tokens^2 / 2 (each token sees those before it), and for what is seen 12 x
  layers x width x patches x patches at once.
- Gradient checkpointing goes forwards once more.
"""

from dataclasses import dataclass
from typing import Final

from unreel.training.load import ExampleCost
from unreel.training.plan.architecture import ModelArchitecture
from unreel.training.recipe import ModelSection

_FORWARD: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleOperations:
    """Operations for one example."""

    text: float
    vision: float

    @property
    def total(self) -> float:
        """Of both parts."""
        return self.text + self.vision


def work_of(
    model: ModelSection, architecture: ModelArchitecture, load: ExampleCost
) -> ExampleOperations:
    """Return the operations for training on one example like `load`."""
    again = _FORWARD if model.gradient_checkpointing else 0
    spoken = (6 if model.tune == "full" else 4) + again
    learns = model.vision == "trained"
    seen = 6 + again if learns else _FORWARD
    return _work(architecture, load, tokens=load.tokens, spoken=spoken, seen=seen)


def asking_work(architecture: ModelArchitecture, load: ExampleCost) -> ExampleOperations:
    """Return the operations for reading one question, before the answer."""
    tokens = load.tokens - load.answer_tokens
    return _work(architecture, load, tokens=tokens, spoken=_FORWARD, seen=_FORWARD)


def _work(
    architecture: ModelArchitecture, load: ExampleCost, *, tokens: int, spoken: int, seen: int
) -> ExampleOperations:
    """`spoken` and `seen` are operations for each parameter and token, or patch."""
    text, vision = architecture.text, architecture.vision
    attention = spoken * text.layers * text.hidden * tokens**2
    looking = 2 * seen * vision.full_layers * vision.hidden * load.patches * load.patches_at_once
    return ExampleOperations(
        text=float(spoken * text.worked * tokens + attention),
        vision=float(seen * vision.parameters * load.patches + looking),
    )
