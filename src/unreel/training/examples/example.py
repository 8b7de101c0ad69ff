"""Training examples: one question with its target answer, the conversion to model input, and their order."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Question
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.clip_inputs import ClipInputLoader, build_review_request
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.training.recipe import OptimiserSection


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample:
    """One annotation row as a training example; its clips are decoded only when it is used."""

    key: str
    """Hash of the question and the row number; determines the order and random seeds."""
    name: str
    """Name of the clip or pair in its benchmark."""
    question: Question
    clips: tuple[Clip, ...]
    truth: Any
    """Ground truth of the annotation row, in the type of its protocol."""
    source: str
    """Scene of the clips; "" if unknown."""
    creator: str = ""
    data: int = 0
    """Index of the recipe's `[[data]]` section, from 0."""
    answer: str | None = None
    """Target answer that replaces the one from the ground truth: a sampled answer with a sufficient reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExampleInput:
    """A training example as model input: the request to a reviewer, and the target answer."""

    example: TrainingExample
    request: ReviewRequest
    target: str
    box_space: str | None
    """Coordinate space of boxes, in the format of `parse_box_space`; `None` for a protocol without boxes."""


SEEN = frozenset({InputKind.FRAMES})
"""Input kinds of local models: sampled frames, whether passed one by one or as one video."""


class BoxSpaceSource(Protocol):
    """Interface that returns the coordinate space in which a model gives boxes."""

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space of the boxes for `clip_input`, in the format of `parse_box_space`."""
        ...


def load_training_example_input(
    example: TrainingExample, loader: ClipInputLoader, source: BoxSpaceSource
) -> TrainingExampleInput | Failure:
    """Load the clips of `example` with `loader` and build its model input, or return a failure.

    The request is the same as in an evaluation, except for its key, which names no reviewer. `source`
    gives the coordinate space of the model's boxes.
    """
    clips = loader.show(example.clips, example.question.condition, SEEN)
    return (
        clips
        if isinstance(clips, Failure)
        else build_training_example_input(example, clips, source)
    )


def build_training_example_input(
    example: TrainingExample, clips: tuple[ClipInput, ...], source: BoxSpaceSource
) -> TrainingExampleInput | Failure:
    """Build the input from `clips`; a failure if the truth cannot be written as an answer."""
    question = example.question
    instrument = get_protocol(question.instrument.protocol)
    declared = source.box_space(clips[0]) if instrument.needs_box_space else None
    width, height = example.clips[0].size
    space = parse_box_space(declared, width=width, height=height) if declared else None
    try:
        target = example.answer
        if target is None:
            target = instrument.wording.teach(example.truth, question.condition.prompt, space)
    except InvalidValueError as error:
        return Failure(FailureReason.REQUEST_REJECTED, f"not taught: {error}")
    request = build_review_request(question, clips, key=example.key, name=example.name)
    return TrainingExampleInput(example=example, request=request, target=target, box_space=declared)


def compute_epoch_order(
    examples: Sequence[TrainingExample], *, weights: Sequence[float], seed: int, epoch: int
) -> list[int]:
    """Return the order of the examples in `epoch`, which counts from 0, as indices into `examples`.

    An example of weight 2 occurs twice in each epoch, an example of weight 0.5 in every second
    epoch. The position of each example depends on its own key, so that a new example does not
    change the order of the others.
    """
    order = []
    for i, example in enumerate(examples):
        weight = weights[example.data]
        begin = int(digest("phase", str(seed), example.key)[:13], 16) / 16**13
        times = math.floor(weight * (epoch + 1) + begin) - math.floor(weight * epoch + begin)
        order += [
            (digest("order", str(seed), str(epoch), example.key, str(time)), i)
            for time in range(times)
        ]
    return [i for _, i in sorted(order)]


class ExampleOrder:
    """Endless sequence of the examples of a training, epoch after epoch.

    The position of an example depends only on its key and the seed, not on the number of processes
    or devices that read the sequence.

    Args:
        examples: Examples to learn from.
        weights: Weights of the data sections.
        seed: Seed of the recipe.
    """

    def __init__(
        self, examples: Sequence[TrainingExample], *, weights: Sequence[float], seed: int
    ) -> None:
        self._examples, self._weights, self._seed = examples, weights, seed
        self._ends: list[int] = []
        self._drawn: tuple[int, list[int]] = (-1, [])

    def __getitem__(self, index: int) -> TrainingExample:
        """Return the example at `index` of the endless sequence."""
        epoch = self._find(index)
        start = self._ends[epoch - 1] if epoch else 0
        return self._examples[self._draw(epoch)[index - start]]

    def _find(self, index: int) -> int:
        """Return the epoch that contains `index`; an epoch may be empty if weights are small."""
        while not self._ends or self._ends[-1] <= index:
            before = self._ends[-1] if self._ends else 0
            self._ends.append(before + len(self._draw(len(self._ends))))
        return bisect_right(self._ends, index)

    def _draw(self, epoch: int) -> list[int]:
        if self._drawn[0] != epoch:
            order = compute_epoch_order(
                self._examples, weights=self._weights, seed=self._seed, epoch=epoch
            )
            self._drawn = (epoch, order)
        return self._drawn[1]


def compute_epoch_length(examples: Sequence[TrainingExample], weights: Sequence[float]) -> float:
    """Return the mean number of examples in an epoch: the sum of their weights."""
    return math.fsum(weights[example.data] for example in examples)


def count_training_steps(optimise: OptimiserSection, *, in_a_pass: float, n_devices: int) -> int:
    """Return the number of training steps: `max_steps` of the recipe, or as many as its epochs need."""
    if optimise.max_steps is not None:
        return optimise.max_steps
    at_once = optimise.batch_size * optimise.accumulate * n_devices
    return max(1, math.ceil(optimise.epochs * in_a_pass / at_once - 1e-9))
