"""Data of a task: the URLs of its clips, without anything that reveals the answer."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from unreel.annotation.campaign import AnnotationTask, TaskAssignment
from unreel.annotation.interfaces.label_studio_results import Result, iter_results
from unreel.annotation.interfaces.screens import AnnotationScreen
from unreel.annotation.judgements import TraceAnswer
from unreel.core.errors import InvalidValueError


def prefill(task: AnnotationTask, *, swapped: bool) -> list[Result]:
    """Return the pre-filled results of a task, as far as its screen can show them.

    A trace without a box is skipped, because a screen cannot show it.
    """
    value = task.prefill
    if value is None:
        return []
    if isinstance(value, TraceAnswer):
        placed = tuple(trace for trace in value.traces if trace.track)
        value = TraceAnswer(traces=placed, label=value.label)
    return list(iter_results(value, task, swapped=swapped))


TASK_KEY: Final = "unreel_task"
"""Where a task on the server says which of ours it is."""
POSITION_KEY: Final = "position"
_PLACES: Final[Mapping[int, tuple[tuple[str, str], ...]]] = {
    1: (("video", "fps"),),
    2: (("left", "fps_left"), ("right", "fps_right")),
}


def build_task_data(
    screen: AnnotationScreen, task: AnnotationTask, assignment: TaskAssignment, urls: Sequence[str]
) -> dict[str, str | int]:
    """Return the `data` of a task on the server.

    Args:
        screen: Screen of the task.
        task: Clip or pair to judge.
        assignment: Annotator, and the order of the clips of a pair.
        urls: URLs of the task's copies for the browser, in the order of the task.

    Raises:
        InvalidValueError: The screen shows another number of clips than the task has.
    """
    if not screen.interface.n_clips == len(task.copies) == len(urls):
        msg = (
            f"the screen {screen.interface.value} shows {screen.interface.n_clips} clip(s), "
            f"got {len(task.copies)} and {len(urls)} address(es). Use another interface"
        )
        raise InvalidValueError(msg)
    shown = list(zip(task.copies, urls, strict=True))
    if assignment.swapped:
        shown.reverse()
    data: dict[str, str | int] = {TASK_KEY: task.id, POSITION_KEY: assignment.position + 1}
    for (place, rate_place), (copy, url) in zip(_PLACES[len(shown)], shown, strict=True):
        data[place] = url
        data[rate_place] = format_frame_rate(copy.rate)
    return data


def format_frame_rate(rate: Fraction) -> str:
    """Format frames per second with the digits that the player needs to locate every frame."""
    return f"{float(rate):.12f}".rstrip("0").rstrip(".")
