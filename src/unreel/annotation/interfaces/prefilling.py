"""Conversion of existing annotations to pre-filled results of a screen."""

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.interfaces.answers import Result, tell
from unreel.annotation.judgements import TraceAnswer


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
    return list(tell(value, task, swapped=swapped))
