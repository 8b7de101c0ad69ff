"""The settings of `[inject]`."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.trace import Category
from unreel.recipes.section import MOST_PARTS, NumberUnit, RecipeSection

CATEGORIES: Final = tuple(category for category in Category if category is not Category.OTHER)


class InjectSection(RecipeSection):
    """`[inject]`: real clips gain twins with one known trace each."""

    share: Annotated[float, Field(gt=0, le=1), NumberUnit("part")] = 1.0
    """Of the real clips, that gain a twin."""
    categories: Annotated[tuple[Category, ...], Field(min_length=1, max_length=MOST_PARTS)] = (
        CATEGORIES
    )
    """What may go wrong; one is drawn for each twin."""
    strength: Annotated[float, Field(gt=0, le=1)] = 0.7
    """How plain the trace is: 1 is seen at once."""

    @model_validator(mode="after")
    def _categories_can_be_injected(self) -> "InjectSection":
        if Category.OTHER in self.categories:
            setting, problem = "inject.categories", "nothing is injected as 'other'"
            raise InvalidSettingError(setting, problem, f"Known: {', '.join(CATEGORIES)}")
        return self
