"""Advice for a path that no layout reads, or that was read with the wrong one."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from unreel.benchmarks.columns import bind, guess_columns
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.folders import VIDEO_SUFFIXES
from unreel.benchmarks.records import LABELS
from unreel.benchmarks.tables import TABLE_SUFFIXES, columns_of, read_table
from unreel.core.errors import UnreadableSourceError

SHOW: Final = "`unreel benchmarks` shows the layouts"


@contextmanager
def advise_layout(fitting: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Add to a refusal by the reader of one layout which other layout fits, if one does."""
    try:
        yield
    except UnreadableSourceError as error:
        if not (others := fitting()):
            raise
        remedy = f"{error.remedy}, or name the layout that fits: --layout {others[0]}"
        raise UnreadableSourceError(error.source, error.problem, remedy) from error


def nothing_fits(
    path: Path, layouts: Sequence[str], mapping: Mapping[str, str] | None
) -> UnreadableSourceError:
    """Return the error for a path that fits none of `layouts`; for a table, with likely columns."""
    if path.is_dir() or path.suffix.lower() not in TABLE_SUFFIXES:
        remedy = f"Lay it out as one of {', '.join(layouts)}, or name a table of clips. {SHOW}"
        return UnreadableSourceError(str(path), "no benchmark that unreel knows", remedy)
    columns = columns_of(path)
    binding = bind(str(path), columns, mapping)
    wanted = {field: looks for field, looks in _LOOKS.items() if field not in binding}
    if binding.tells_label:
        wanted.pop("label", None)
    rows = (row for row in read_table(path) if not isinstance(row, Rejected))
    guessed = guess_columns(rows, [c for c in columns if c not in binding.read], wanted)
    named = [f"--map {field}={shlex.quote(guessed.get(field, 'COLUMN'))}" for field in wanted]
    problem = f"no column holds the {' or the '.join(wanted)} (it has {', '.join(columns)})"
    remedy = f"Name the column: {' '.join(named)}. {SHOW}"
    return UnreadableSourceError(str(path), problem, remedy)


def _looks_like_clip(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().lower().endswith(VIDEO_SUFFIXES)


def _looks_like_label(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().lower() in LABELS


_LOOKS: Final = {"location": _looks_like_clip, "label": _looks_like_label}
"""What every table of clips must tell, and how its cells look."""
