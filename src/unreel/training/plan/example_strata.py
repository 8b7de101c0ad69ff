"""Groups of training examples with equal cost, from the benchmarks or as the recipe declares them."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from unreel.core.errors import InvalidSettingError
from unreel.protocols.box_space import PERMILLE, BoxSpace
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.endpoint.token_estimate import CHARACTERS
from unreel.training.example_cost import ExampleStratum
from unreel.training.recipe import TrainingDataSection, TrainRecipe

if TYPE_CHECKING:
    from unreel.engine.storage_access import ClipAccessSettings
    from unreel.training.examples.example import TrainingExample

_PERMILLE: Final = BoxSpace("permille", PERMILLE, PERMILLE)


def build_declared_example_strata(recipe: TrainRecipe) -> list[ExampleStratum]:
    """Return the groups of examples with equal cost that the recipe declares.

    Raises:
        InvalidSettingError: A `[[data]]` section has no `[[data.expected]]`.
    """
    return [stratum for data in recipe.data for stratum in _iter_declared_strata(data)]


def read_benchmark_example_strata(
    recipe: TrainRecipe, access: "ClipAccessSettings"
) -> list[ExampleStratum]:
    """Read the example groups of the recipe's benchmarks; clips are hashed and probed, not decoded."""
    from unreel.training.examples.reading import (
        read_training_examples,  # requires `unreel[eval]`
    )

    holdout = recipe.holdout.model_copy(update={"near_duplicates": False, "benchmarks": ()})
    light = recipe.model_copy(update={"holdout": holdout})
    with TemporaryDirectory(prefix="unreel-") as folder:
        read = read_training_examples(light, access=access, folder=Path(folder), accept_leak=True)
    counts = Counter(_build_example_stratum(example) for example in read.train)
    return [
        replace(stratum, examples=n * read.weights[data]) for (stratum, data), n in counts.items()
    ]


def has_local_benchmarks(recipe: TrainRecipe) -> bool:
    """Return whether all benchmarks of the recipe's data are present locally."""
    return all(data.benchmark is not None and data.path.exists() for data in recipe.data)


def _build_example_stratum(example: "TrainingExample") -> tuple[ExampleStratum, int]:
    """Return an example as its own group (pairs like their first clip), and its `[[data]]` index."""
    video, question = example.clips[0].facts.video, example.question
    wording = get_protocol(question.instrument.protocol).wording
    answer = wording.teach(example.truth, question.condition.prompt, _PERMILLE)
    stratum = ExampleStratum(
        examples=1,
        seconds=video.duration_s,
        rate=video.average_rate or Fraction(1),
        width=video.width,
        height=video.height,
        clips=len(example.clips),
        protocol=question.instrument.protocol,
        condition=question.condition,
        answer_tokens=math.ceil(len(answer) / CHARACTERS),
    )
    return stratum, example.data


def _iter_declared_strata(data: TrainingDataSection) -> Iterator[ExampleStratum]:
    if not data.expected:
        setting, problem = "data.expected", "the content of its benchmark is unknown"
        remedy = "Name a benchmark that is here with --data PATH, or write [[data.expected]]"
        raise InvalidSettingError(setting, problem, remedy)
    for part in data.expected:
        yield ExampleStratum(
            examples=part.examples * data.weight,
            seconds=Fraction(part.seconds).limit_denominator(10**6),
            rate=Fraction(part.rate).limit_denominator(10**6),
            width=part.width,
            height=part.height,
            clips=2 if data.instrument.subject == "pair" else 1,
            protocol=data.protocol,
            condition=data.asked,
            answer_tokens=part.answer_tokens,
        )
