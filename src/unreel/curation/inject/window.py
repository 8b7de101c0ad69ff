"""Rectangles of whole pixels inside a frame."""

from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class PixelWindow:
    """Columns `left` to `right` and rows `top` to `bottom` of a frame; `right`, `bottom` are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right and 0 <= self.top < self.bottom):
            msg = f"a window needs a column and a row, got {self}. Clip it to the frame first"
            raise InvalidValueError(msg)

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return self.bottom - self.top

    @property
    def area(self) -> int:
        """Return the number of pixels."""
        return self.width * self.height

    @property
    def centre(self) -> tuple[float, float]:
        """Return the column and row of the centre."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    @property
    def slices(self) -> tuple[slice, slice]:
        """Return the rows and columns as array slices."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def as_box(self, width: int, height: int) -> Box:
        """Return the window as fractions of a frame of `width` x `height` pixels."""
        return Box(self.left / width, self.top / height, self.right / width, self.bottom / height)


def build_window(
    centre: tuple[float, float], size: tuple[float, float], *, frame: tuple[int, int]
) -> PixelWindow | None:
    """Return the window of `size` around `centre`, clipped to `frame`; `None` if nothing remains."""
    left, right = (round(centre[0] + sign * size[0] / 2) for sign in (-1, 1))
    top, bottom = (round(centre[1] + sign * size[1] / 2) for sign in (-1, 1))
    left, top = max(0, left), max(0, top)
    right, bottom = min(frame[0], right), min(frame[1], bottom)
    return PixelWindow(left, top, right, bottom) if left < right and top < bottom else None


def merge_windows(windows: Sequence[PixelWindow]) -> PixelWindow:
    """Return the smallest window that contains all `windows`."""
    return PixelWindow(
        min(window.left for window in windows),
        min(window.top for window in windows),
        max(window.right for window in windows),
        max(window.bottom for window in windows),
    )


def pad_window(window: PixelWindow, by: int, *, frame: tuple[int, int]) -> PixelWindow:
    """Return `window` with `by` more pixels on each side, clipped to `frame`."""
    return PixelWindow(
        max(0, window.left - by),
        max(0, window.top - by),
        min(frame[0], window.right + by),
        min(frame[1], window.bottom + by),
    )
