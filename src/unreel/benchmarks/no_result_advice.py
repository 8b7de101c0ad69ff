"""Explain why nothing of a benchmark can be measured, with advice."""

import difflib
from collections.abc import Collection, Sequence
from typing import Any, Final

from unreel.benchmarks.entry import Rejected
from unreel.core.errors import (
    InvalidSettingError,
    UnknownNameError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.protocols.protocol import Protocol

_LOOKED_THROUGH: Final = 10_000
"""Names among which the nearest is looked for."""
_PAIRED: Final = (
    "Name the scene of each clip in a column `group`: a pair is a real and a generated clip of one"
)


def build_no_entry_error(
    source: str, rejected: Sequence[Rejected], *, n_rejected: int
) -> UnreelError:
    """Build the error for a benchmark without a usable row."""
    if rejected:
        # The reason of a row ends with what to do about it.
        problem = f"none of its {n_rejected:,} rows can be used"
        return UnreadableSourceError(source, problem, f"The first is {rejected[0]}")
    remedy = "Add a row for each clip, or name the folder or table that holds them"
    return UnreadableSourceError(source, "it holds no clip", remedy)


def build_no_split_error(split: str, known: Collection[str]) -> UnreelError:
    """Build the error for a split without an entry."""
    if named := sorted({*known} - {""}):
        kind = "split"
        return UnknownNameError(kind, split, named)
    setting, problem = "split", f"the benchmark names no splits, so none is {split!r}"
    remedy = "Leave the split out, or write a column `split`"
    return InvalidSettingError(setting, problem, remedy)


def build_no_question_error(
    source: str, protocol: Protocol[Any, Any], rejected: Sequence[Rejected]
) -> UnreelError:
    """Return the error of a benchmark without questions; `rejected` lack data of the protocol."""
    name = protocol.instrument.protocol
    problem = f"no question of {name} can be put about its clips"
    remedy = "Ask with audio=off: none of them has sound"
    if protocol.subject == "pair":
        remedy = f"The first is {rejected[0]}. {_PAIRED}" if rejected else _PAIRED
    elif rejected:
        problem = f"no clip has the truth that {name} compares with"
        remedy = f"The first is {rejected[0]}"
    return UnreadableSourceError(source, problem, remedy)


def build_no_answer_error(source: str, unknown: Sequence[str], names: Sequence[str]) -> UnreelError:
    """Build the error for an answers file in which no answer matches a name in `names`.

    `unknown` lists the names in the answers file.
    """
    if not unknown:
        remedy = "Write a row with `name` and `text` for each clip"
        return UnreadableSourceError(source, "it holds no answer", remedy)
    first = unknown[0]
    near = difflib.get_close_matches(first, names[:_LOOKED_THROUGH], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    example = f", such as {names[0]!r}" if names else ""
    problem = f"none of its {len(unknown):,} answers is about a clip of the benchmark, the first names {first!r}"
    remedy = f"{hint}Use the names or locations of its rows{example}"
    return UnreadableSourceError(source, problem, remedy)
