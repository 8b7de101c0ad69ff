"""The examples that a plan counts with: as the benchmark holds them, or as its makers count them."""

from collections.abc import Iterator
from fractions import Fraction

from unreel.core.errors import InvalidSettingError
from unreel.train.plan.load import Stratum
from unreel.train.recipe import DataSection, TrainRecipe


def expected_strata(recipe: TrainRecipe) -> list[Stratum]:
    """What the recipe declares of its data.

    Raises:
        InvalidSettingError: Some of its data declare nothing.
    """
    return [stratum for data in recipe.data for stratum in _declared(data)]


def _declared(data: DataSection) -> Iterator[Stratum]:
    if not data.expected:
        setting, problem = "data.expected", f"nobody says what {data.benchmark!r} holds"
        remedy = "Name a benchmark that is here with --data, or write [[data.expected]]"
        raise InvalidSettingError(setting, problem, remedy)
    for part in data.expected:
        yield Stratum(
            examples=part.examples * data.weight,
            seconds=Fraction(part.seconds).limit_denominator(10**6),
            rate=Fraction(part.rate).limit_denominator(10**6),
            width=part.width,
            height=part.height,
            protocol=data.protocol,
            condition=data.asked,
            answer_tokens=part.answer_tokens,
        )
