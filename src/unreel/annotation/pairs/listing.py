"""The file of pairs that `unreel annotate pairs` writes and `push --pairs` reads: columns first, second."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from unreel.annotation.pairs.planning import NamePair
from unreel.core.document import read_bytes
from unreel.core.errors import UnreadableSourceError
from unreel.core.sheet import csv_text
from unreel.core.writing import OutputDirectory

COLUMNS: Final = ("first", "second")
_MOST_BYTES: Final = 256 << 20
_REMEDY: Final = "Write two columns, first and second, with the names of two clips in each line"


def write_pairs(path: Path, pairs: Iterable[NamePair]) -> None:
    """Make the file at `path`, or replace it."""
    rows = [dict(zip(COLUMNS, pair, strict=True)) for pair in pairs]
    OutputDirectory(path.parent, published=True).write(path.name, csv_text(COLUMNS, rows).encode())


def read_pairs(path: Path) -> list[NamePair]:
    """The pairs of a file, each once, with both names in alphabetical order.

    Raises:
        UnreadableSourceError: It cannot be read, or a line does not name two clips.
    """
    data = read_bytes(path, most=_MOST_BYTES)
    try:
        sheet = csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True)
        rows = list(sheet)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableSourceError(str(path), f"no table: {error}", _REMEDY) from error
    found: dict[NamePair, None] = {}
    for number, row in enumerate(rows, start=2):
        one, other = sorted(_name(row.get(column)) for column in COLUMNS)
        if not one or one == other:
            raise UnreadableSourceError(str(path), f"line {number} names no two clips", _REMEDY)
        found[one, other] = None
    if not found:
        raise UnreadableSourceError(str(path), "no pairs", _REMEDY)
    return list(found)


def _name(cell: str | None) -> str:
    """A clip's name, without the mark that keeps a spreadsheet from calculating it."""
    name = cell or ""
    sheet = csv_text(("name",), [{"name": name[1:]}]).splitlines()
    is_marked = name.startswith("'") and len(sheet) > 1 and sheet[1].strip('"').startswith("'")
    return name[1:] if is_marked else name
