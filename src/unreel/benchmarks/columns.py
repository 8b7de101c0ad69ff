"""Which column of a table holds what: known names, or a mapping that the user gives."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from unreel.benchmarks.tables import Cells
from unreel.core.errors import UnknownNameError, UnreadableSourceError

KNOWN: Final[dict[str, tuple[str, ...]]] = {
    "location": ("file_name", "file", "location", "video_path", "video", "path", "url"),
    "cleaned": ("cleaned", "cleaned_file_name"),
    "name": ("name", "clip_id", "video_id", "id"),
    "label": ("label", "origin"),
    "creator": ("creator", "generator", "model"),
    "setting": ("setting",),
    "split": ("split",),
    "group": ("group",),
    "prompt": ("prompt", "video_prompt", "caption"),
    "difficulty": ("difficulty",),
    "licence": ("licence", "license"),
    "source": ("source", "source_repo", "source_url"),
    "width": ("width", "video_width"),
    "height": ("height", "video_height"),
    "rate": ("frame_rate", "fps", "rate", "video_frame_rate"),
    "n_frames": ("n_frames", "frames", "frame_count", "video_frame_count"),
    "duration_us": ("duration_us",),
    "duration_s": ("duration_s", "duration", "video_duration"),
    "score": ("score", "rating", "mos"),
    "problem": ("problem_description", "problem"),
    "adherence": ("standard_adherence", "adherence"),
    "error_family": ("error_family",),
    "score_1": ("score_1",),
    "score_2": ("score_2",),
    "score_3": ("score_3",),
    "problem_1": ("problem_description_1", "problem_1"),
    "problem_2": ("problem_description_2", "problem_2"),
    "problem_3": ("problem_description_3", "problem_3"),
    "adherence_1": ("standard_adherence_1", "adherence_1"),
    "adherence_2": ("standard_adherence_2", "adherence_2"),
    "adherence_3": ("standard_adherence_3", "adherence_3"),
    "traces": ("traces",),
    "ratings": ("ratings",),
    "votes": ("votes",),
}
"""What a row may say, and the column names under which it is looked for, first match first."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the rows of one table say what."""

    columns: Mapping[str, tuple[str, ...]]
    """Columns to look in, by field, first match first."""
    present: frozenset[str]
    """Columns that the table has; rows of JSONL may have more."""

    def __contains__(self, field: str) -> bool:
        return not self.present.isdisjoint(self.columns[field])

    def cell(self, row: Cells, field: str) -> object:
        """What `row` says of `field`; None where it is silent."""
        for column in self.columns.get(field, ()):
            if column in row:
                return row[column]
        return None


def bind(source: str, columns: Iterable[str], mapping: Mapping[str, str] | None = None) -> Binding:
    """Find the columns of `source`; `mapping` names the column of a field in place of known names.

    Raises:
        UnknownNameError: `mapping` has a field that no row has.
        UnreadableSourceError: `mapping` names a column that the table does not have.
    """
    present = frozenset(columns)
    given = dict(mapping or {})
    for field, column in given.items():
        if field not in KNOWN:
            kind = "field of a benchmark's row"
            raise UnknownNameError(kind, field, sorted(KNOWN))
        if column not in present:
            remedy = f"Choose one of: {', '.join(sorted(present))}"
            raise UnreadableSourceError(source, f"no column {column!r} for {field}", remedy)
    return Binding(KNOWN | {field: (column,) for field, column in given.items()}, present)
