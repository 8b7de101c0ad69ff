"""Marks that somebody made before, as a screen shows them to be mended."""

from unreel.annotate.campaign import Task
from unreel.annotate.interfaces.answers import Result, tell
from unreel.annotate.judgements import Traced


def prefill(task: Task, *, swapped: bool) -> list[Result]:
    """Return the pre-filled results of a task, as far as its screen can show them.

    A trace whose place nobody marked is left out; a screen could not show it.
    """
    value = task.prefill
    if value is None:
        return []
    if isinstance(value, Traced):
        placed = tuple(trace for trace in value.traces if trace.track)
        value = Traced(traces=placed, label=value.label)
    return list(tell(value, task, swapped=swapped))
