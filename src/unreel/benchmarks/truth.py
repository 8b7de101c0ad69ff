"""What an instrument compares an answer with, for one entry of a benchmark."""

from typing import Any

from unreel.benchmarks.entry import Entry
from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.protocols.trace.truth import TraceTruth


def truths_of(entry: Entry, protocol: str, *, duration_us: int | None = None) -> tuple[Any, ...]:
    """One truth for each row that is scored: for `trace` one for each annotation row.

    `duration_us` is the length of the file itself; a length that the source declares goes before it.

    Raises:
        InvalidValueError: The entry lacks what the instrument compares with.
        UnknownNameError: No instrument of that name judges single clips.
    """
    match protocol:
        case "trace":
            return _trace_truths(entry, entry.facts.duration_us or duration_us)
        case "realism":
            if entry.rating is None:
                msg = "no rating. Add a score column, or choose another protocol"
                raise InvalidValueError(msg)
            return (entry.rating,)
        case "reality":
            return (entry.origin,)
        case _:
            kind = "protocol of single clips"
            raise UnknownNameError(kind, protocol, ["realism", "reality", "trace"])


def _trace_truths(entry: Entry, duration_us: int | None) -> tuple[TraceTruth, ...]:
    if duration_us is None:
        msg = "no duration declared. Add a duration_s column, or read it from the file"
        raise InvalidValueError(msg)
    return tuple(
        TraceTruth(label=entry.label, duration_us=duration_us, trace=trace)
        for trace in entry.traces or (None,)
    )
