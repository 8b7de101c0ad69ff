"""Mapping of a table's columns to fields of an entry, by known names or by the user's mapping."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from difflib import get_close_matches
from itertools import islice

from unreel.benchmarks.tables import Cells
from unreel.core.errors import UnknownNameError, UnreadableSourceError, suggest_names

KNOWN: dict[str, tuple[str, ...]] = {
    "location": ("file_name", "file", "location", "video_path", "video", "path", "url", "filename"),
    "cleaned": ("cleaned", "cleaned_file_name"),
    "name": ("name", "clip_id", "video_id", "id"),
    "label": ("label", "origin"),
    "is_fake": ("is_fake",),
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
"""Fields of a row, and the column names under which each is searched, first match first."""

MEANS: dict[str, str] = {
    "location": "path or URL of the clip",
    "cleaned": "the clip without its watermark",
    "name": "identifier of the clip in answers",
    "label": "real, or generated or fake",
    "is_fake": "1 for generated or 0 for real, in place of a label",
    "creator": "generator of a clip",
    "setting": "generation setting",
    "split": "part of the benchmark",
    "group": "scene: a real clip and its generated twins",
    "prompt": "prompt of the generator",
    "difficulty": "difficulty of the clip, in your words",
    "licence": "licence of the clip",
    "source": "source of the clip",
    "width": "width in pixels",
    "height": "height in pixels",
    "rate": "frames per second",
    "n_frames": "number of frames",
    "duration_us": "length in microseconds",
    "duration_s": "length in seconds",
    "score": "agreed realism, 1 to 5",
    "problem": "description of the fault",
    "adherence": "adherence to the prompt",
    "error_family": "kind of the errors",
    **{f"score_{n}": f"realism by annotator {n}" for n in (1, 2, 3)},
    **{f"problem_{n}": f"description of the fault, by annotator {n}" for n in (1, 2, 3)},
    **{f"adherence_{n}": f"adherence to the prompt, by annotator {n}" for n in (1, 2, 3)},
    "traces": "marked faults, as JSON",
    "ratings": "annotators' scores, as JSON",
    "votes": "people's votes, as JSON",
}
"""Descriptions of the same fields."""
_N_SAMPLE_ROWS = 20
_MAX_CACHED_SHAPES = 64
"""Maximum number of column sets whose bindings are cached: in JSONL each row may have other columns."""


@dataclass(frozen=True, slots=True)
class FieldColumnMapping:
    """Mapping from the fields of a benchmark row to the columns of one table."""

    columns: Mapping[str, tuple[str, ...]]
    """Columns to search, by field, first match first."""
    present: frozenset[str]
    """Columns of the table; rows of JSONL may have more."""
    outside: bool = False
    """Whether rows may name files outside the table's folder."""
    _places: dict[tuple[str, ...], list[tuple[str, str]]] = dataclass_field(
        default_factory=dict, compare=False, repr=False
    )
    """Cached pairs of field and column for rows with these columns; most rows of a table have the same ones."""

    def __contains__(self, field: str) -> bool:
        return not self.present.isdisjoint(self.columns[field])

    @property
    def has_label_column(self) -> bool:
        """Return whether the table has a column with the labels of the clips."""
        return "label" in self or "is_fake" in self

    @property
    def read(self) -> Mapping[str, str]:
        """Return the field of each column that is read from the table; ignored columns are omitted."""
        fields: dict[str, str] = {}
        for field, names in self.columns.items():
            column = next((name for name in names if name in self.present), None)
            if column is not None:
                fields.setdefault(column, field)
        return fields

    def cell(self, row: Cells, field: str) -> object:
        """Return the value of `field` in `row`; `None` if the row has no column for it."""
        for column in self.columns.get(field, ()):
            if column in row:
                return row[column]
        return None

    def read_fields(self, row: Cells) -> dict[str, object]:
        """Return the values of `row` by field; a field without a column is omitted."""
        columns = tuple(row)
        bindings = self._places.get(columns)
        if bindings is None:
            if len(self._places) >= _MAX_CACHED_SHAPES:
                self._places.clear()
            candidates = (
                (field, next((n for n in names if n in row), None))
                for field, names in self.columns.items()
            )
            bindings = self._places[columns] = [(field, name) for field, name in candidates if name]
        return {field: row[name] for field, name in bindings}


def map_fields_to_columns(
    source: str,
    columns: Iterable[str],
    mapping: Mapping[str, str] | None = None,
    *,
    outside: bool = False,
) -> FieldColumnMapping:
    """Find the column of the table `source` for each field of a benchmark entry.

    A field's column is the one in `mapping`, else one of its known names. Raise `UnknownNameError`
    if `mapping` has an unknown field, or `UnreadableSourceError` if `mapping` names a column that
    the table does not have.
    """
    present = frozenset(columns)
    requested = dict(mapping or {})
    for field, column in requested.items():
        if field not in KNOWN:
            raise UnknownNameError("field of a benchmark's row", field, sorted(KNOWN))
        if column not in present:
            remedy = suggest_names(column, sorted(present))
            raise UnreadableSourceError(source, f"no column {column!r} for {field}", remedy)
    return FieldColumnMapping(
        KNOWN | {field: (column,) for field, column in requested.items()}, present, outside
    )


def find_nearest_column_name(column: str) -> str:
    """Return the known column name nearest to `column`; "" if none is near."""
    names = [name for names in KNOWN.values() for name in names]
    close = get_close_matches(column.strip().lower().replace(" ", "_"), names, n=1, cutoff=0.8)
    return close[0] if close else ""


def guess_field_columns(
    rows: Iterable[Cells], columns: Iterable[str], known: Mapping[str, Callable[[object], bool]]
) -> dict[str, str]:
    """Guess the column of each field in `known`: by the column's name, else by its cells."""
    sample = list(islice(rows, _N_SAMPLE_ROWS))
    guessed: dict[str, str] = {}
    for field, looks_like in known.items():
        named = [column for column in columns if find_nearest_column_name(column) in KNOWN[field]]
        matching = [c for c in columns if sample and all(looks_like(row.get(c)) for row in sample)]
        free = [column for column in [*named, *matching] if column not in guessed.values()]
        if free:
            guessed[field] = free[0]
    return guessed
