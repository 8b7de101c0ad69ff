"""Settings of an export: shape of clips, frames and sizes."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

from unreel.core.errors import InvalidSettingError
from unreel.core.question import Condition
from unreel.media.sampling import LlamaFactorySampling, PerSecondSampling, parse_plan
from unreel.protocols.presentation import LONGEST_SIDE, shows_times
from unreel.training.recipe import TrainRecipe

Shape = Literal["pictures", "film", "file"]
"""Our frames one by one behind their instants; our frames as one video; or the clip's own file, of which
that trainer takes frames by a rule of its own."""
Keeping = Literal["link", "copy"]
"""Handling of a clip's own file: it is never encoded again."""
MOST_FRAMES: Final = 768
"""Of a clip, where the recipe's plan has no end: what Qwen's own tools allow."""
_FRAMES: Final = 'Set input="frames", which every trainer uses unchanged'


@dataclass(frozen=True, slots=True)
class FrameRateLimit:
    """Frames per second, and the maximum `at_most`: the only settings that other trainers support."""

    fps: Fraction
    at_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """One recipe for one trainer."""

    recipe: TrainRecipe
    shape: Shape
    condition: Condition
    """Of its data: a trainer has one setting for all of them."""
    pace: FrameRateLimit | None
    """`None` for pictures, which have their timestamps as text."""
    keeping: Keeping
    model_folder: Path | None
    """Folder of the model, if it is local."""

    @property
    def most_pixels(self) -> int:
        """Return the maximum number of pixels for a trainer without a longest side."""
        return self.condition.max_pixels or LONGEST_SIDE**2

    @property
    def shows_times(self) -> bool:
        """Return whether the question is about timestamps."""
        return any(shows_times(data.protocol, data.asked.marks) for data in self.recipe.data)


def place_order(
    recipe: TrainRecipe, *, as_film: bool = False, keeping: Keeping = "link"
) -> ExportJob:
    """Return the export order for `recipe`; `as_film`: export our frames instead of the clip's file.

    Raises:
        InvalidSettingError: No other trainer supports the recipe's settings.
    """
    conditions = {data.asked for data in recipe.data}
    shape: Shape = "pictures" if recipe.input == "frames" else "film" if as_film else "file"
    if as_film and shape == "pictures":
        setting, problem = "--as-frames", 'says nothing more under input="frames"'
        raise InvalidSettingError(setting, problem, "Leave it out")
    alike = {(c.sampling, c.max_pixels) for c in conditions}
    if shape != "pictures" and len(alike) > 1:
        setting, problem = "data.condition", "a trainer has one sampling and one size for all data"
        raise InvalidSettingError(setting, problem, f"Make them alike, or: {_FRAMES}")
    condition = next(iter(conditions))
    folder = Path(recipe.model.name)
    return ExportJob(
        recipe=recipe,
        shape=shape,
        condition=condition,
        pace=None if shape == "pictures" else _parse_frame_rate(condition.sampling),
        keeping=keeping,
        model_folder=folder.resolve() if folder.is_dir() else None,
    )


def _parse_frame_rate(sampling: str) -> FrameRateLimit:
    match parse_plan(sampling):
        case PerSecondSampling(fps, at_most):
            return FrameRateLimit(fps, at_most or MOST_FRAMES)
        case LlamaFactorySampling(fps, at_most):
            return FrameRateLimit(fps, at_most)
        case _:
            setting, problem = "data.condition.sampling", f"no other trainer takes {sampling}"
            remedy = f"Name a rate, for example fps-2-max-180. Or: {_FRAMES}"
            raise InvalidSettingError(setting, problem, remedy)
