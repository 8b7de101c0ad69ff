"""Conversion of table rows to benchmark entries with their ratings, and of entries to table rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import FailFast, TypeAdapter, ValidationError

from unreel.benchmarks import cells
from unreel.benchmarks.cells import NESTED_VALUES
from unreel.benchmarks.columns import FieldColumnMapping, map_fields_to_columns
from unreel.benchmarks.entry import NOTHING_DECLARED, DeclaredFacts, Entry, Rejected, Row
from unreel.benchmarks.tables import Cells, read_table_column_names, read_table_rows
from unreel.core.clip import Generated, Origin, Real
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json
from unreel.core.judgement import ErrorFamily, Label, Rating, Vote
from unreel.core.span import convert_to_microseconds
from unreel.core.trace import Trace

ANNOTATORS = (1, 2, 3)


def has_score_columns(mapping: FieldColumnMapping) -> bool:
    """Return whether a table has agreed realism scores, or the scores of all three annotators."""
    return "score" in mapping or all(f"score_{number}" in mapping for number in ANNOTATORS)


def parse_agreed_rating(row: Cells, mapping: FieldColumnMapping) -> Rating | None:
    """Return the agreed rating in `row`; `None` if the row has no agreed score."""
    if cells.is_blank_cell(cell := mapping.cell(row, "score")):
        return None
    return Rating(
        score=cells.parse_count_cell(cell, "score"),
        problem=cells.parse_text_cell(mapping.cell(row, "problem"), "problem"),
        adherence=cells.parse_text_cell(mapping.cell(row, "adherence"), "adherence"),
        family=parse_error_family(row, mapping),
    )


def parse_annotator_ratings(row: Cells, mapping: FieldColumnMapping) -> tuple[Rating, ...]:
    """Return the ratings of the three annotators; an empty tuple if the row has no annotator score."""
    fields = [f"score_{number}" for number in ANNOTATORS]
    if all(cells.is_blank_cell(mapping.cell(row, field)) for field in fields):
        return ()
    ratings = []
    for number in ANNOTATORS:
        score, problem, adherence = (
            f"{name}_{number}" for name in ("score", "problem", "adherence")
        )
        ratings.append(
            Rating(
                score=cells.parse_count_cell(mapping.cell(row, score), score),
                problem=cells.parse_text_cell(mapping.cell(row, problem), problem),
                adherence=cells.parse_text_cell(mapping.cell(row, adherence), adherence),
            )
        )
    return tuple(ratings)


def merge_ratings(ratings: Sequence[Rating]) -> Rating:
    """Merge the ratings of three annotators into one rating.

    If two or three annotators gave the same score, use that score with the reasons of the first of
    them. Otherwise use the rounded mean score, with the reasons of the annotator closest to it.
    """
    if len(ratings) != len(ANNOTATORS):
        raise InvalidValueError(f"a row must have {len(ANNOTATORS)} ratings, got {len(ratings)}")
    score, times = Counter(rating.score for rating in ratings).most_common(1)[0]
    if times == 1:
        mean = Fraction(sum(rating.score for rating in ratings), len(ratings))
        score = round(mean)  # the mean is a multiple of a third, so there is no tie
    closest = min(ratings, key=lambda rating: abs(rating.score - score))
    return replace(closest, score=score)


def parse_error_family(row: Cells, mapping: FieldColumnMapping) -> ErrorFamily | None:
    """Return the error family in `row`, also written with blanks or `_`; `None` if it is empty."""
    text = cells.parse_text_cell(mapping.cell(row, "error_family"), "error_family")
    word = text.lower().replace("_", "-").replace(" ", "-")
    families = [family.value for family in ErrorFamily]
    if text and word not in families:
        cells.raise_invalid_cell(
            "error_family", text, f"Write one of {', '.join(families)}, or nothing"
        )
    return ErrorFamily(word) if text else None


UNKNOWN_CREATOR = "unknown"
# Only words: 0 and 1 are ambiguous in a column `label`, but not in a column `is_fake`.
LABELS: Mapping[str, Label] = {
    "real": Label.REAL,
    "generated": Label.GENERATED,
    "fake": Label.GENERATED,
    "real_video": Label.REAL,
    "fake_video": Label.GENERATED,
}

_FLAGS: Mapping[object, Label] = {
    **dict.fromkeys((0, "0", "0.0", "false"), Label.REAL),
    **dict.fromkeys((1, "1", "1.0", "true"), Label.GENERATED),
}
"""Values of a column `is_fake`; False equals 0, and True 1."""
_WRITE_FLAG = "Write 1 for generated or 0 for real"
# The first wrong item is enough: a list of them all takes more memory than the cell.
_REAL = Real()
_TEXTS = (
    *("name", "label", "creator", "setting", "split", "group"),
    *("prompt", "difficulty", "licence", "source"),
)
_ANNOTATED = frozenset(f"score_{number}" for number in ANNOTATORS)
_DECLARED = frozenset(("width", "height", "n_frames", "duration_us", "rate", "duration_s"))
_TRACES = TypeAdapter(Annotated[tuple[Trace, ...], FailFast()])
_RATINGS = TypeAdapter(Annotated[tuple[Rating, ...], FailFast()])
_VOTES = TypeAdapter(Annotated[tuple[Vote, ...], FailFast()])


def parse_entry_or_reject(
    row: Cells | Rejected, mapping: FieldColumnMapping, *, number: int
) -> Row:
    """Return the entry in `row`, or a `Rejected` with the reason; `number` is the row number from 1."""
    if isinstance(row, Rejected):
        return row
    try:
        return parse_entry(row, mapping)
    except InvalidValueError as error:
        return Rejected(get_row_name(row, mapping, number=number), str(error))


def parse_entry(row: Cells, mapping: FieldColumnMapping, *, label: Label | None = None) -> Entry:
    """Return the row's entry, with `label` without a label column; raise `InvalidValueError` if invalid."""
    values = mapping.read_fields(row)
    location = cells.parse_clip_location(
        _get_video_path(values.get("location")), "location", outside=mapping.outside
    )
    cleaned = None
    if not cells.is_blank_cell(cell := _get_video_path(values.get("cleaned"))):
        cleaned = cells.parse_clip_location(cell, "cleaned", outside=mapping.outside)
    rating = parse_agreed_rating(row, mapping) if "score" in values else None
    annotated: tuple[Rating, ...] = ()
    if rating is None and not _ANNOTATED.isdisjoint(values):
        annotated = parse_annotator_ratings(row, mapping)
    if annotated:
        rating = replace(merge_ratings(annotated), family=parse_error_family(row, mapping))
    texts: dict[str, str] = {
        field: cells.parse_text_cell(values[field], field) for field in _TEXTS if field in values
    }
    text = texts.get
    origin: Origin = _REAL
    if _parse_row_label(texts, values, mapping, label) is Label.GENERATED:
        origin = _build_generated_origin(text("creator") or UNKNOWN_CREATOR, text("setting", ""))
    return Entry(
        name=text("name", "") or location,
        location=location,
        origin=origin,
        cleaned=cleaned,
        split=text("split", ""),
        group=text("group", ""),
        prompt=text("prompt", ""),
        difficulty=text("difficulty", ""),
        traces=_parse_nested_list(values, "traces", _TRACES),
        rating=rating,
        ratings=annotated or _parse_nested_list(values, "ratings", _RATINGS),
        votes=_parse_nested_list(values, "votes", _VOTES),
        facts=NOTHING_DECLARED
        if _DECLARED.isdisjoint(values)
        else parse_declared_facts(row, mapping),
        licence=text("licence", ""),
        source=text("source", ""),
    )


def parse_declared_facts(row: Cells, mapping: FieldColumnMapping) -> DeclaredFacts:
    """Return the properties of the clip that `row` declares: frame size, rate, frames and duration."""
    width, height, n_frames, duration_us = (
        None if cells.is_blank_cell(cell) else cells.parse_count_cell(cell, field)
        for field in ("width", "height", "n_frames", "duration_us")
        for cell in [mapping.cell(row, field)]
    )
    rate, duration_s = (
        None if cells.is_blank_cell(cell) else cells.parse_positive_number(cell, field)
        for field in ("rate", "duration_s")
        for cell in [mapping.cell(row, field)]
    )
    if duration_us is None and duration_s is not None:
        duration_us = convert_to_microseconds(duration_s)
    return DeclaredFacts(
        width=width, height=height, rate=rate, n_frames=n_frames, duration_us=duration_us
    )


def get_row_name(row: Cells, mapping: FieldColumnMapping, *, number: int) -> str:
    """Return a printable name for a row that may be damaged: the name, the file name or the number."""
    for field in ("name", "location"):
        cell = mapping.cell(row, field)
        if isinstance(cell, str | int) and not cells.is_blank_cell(cell):
            return cells.format_untrusted_cell(cell).strip("'\"")
    return f"row {number}"


def convert_entry_to_record(entry: Entry, *, file_name: str) -> dict[str, Any]:
    """Convert `entry` to a JSON object with the same keys for every entry, `file_name` first."""
    generated = entry.origin if isinstance(entry.origin, Generated) else None
    rating, facts = entry.rating, entry.facts
    traces = _TRACES.dump_python(entry.traces, mode="json")
    for trace in traces:
        trace["categories"].sort()
    return {
        "file_name": file_name,
        "cleaned": entry.cleaned or "",
        "name": entry.name,
        "label": entry.label.value,
        "creator": generated.creator if generated else "",
        "setting": generated.setting if generated else "",
        "split": entry.split,
        "group": entry.group,
        "prompt": entry.prompt,
        "difficulty": entry.difficulty,
        "score": rating.score if rating else None,
        "problem_description": rating.problem if rating else "",
        "standard_adherence": rating.adherence if rating else "",
        "error_family": rating.family.value if rating and rating.family else "",
        "traces": traces,
        "ratings": _RATINGS.dump_python(entry.ratings, mode="json"),
        "votes": _VOTES.dump_python(entry.votes, mode="json"),
        "width": facts.width,
        "height": facts.height,
        "frame_rate": None if facts.rate is None else _format_frame_rate(facts.rate),
        "n_frames": facts.n_frames,
        "duration_us": facts.duration_us,
        "licence": entry.licence,
        "source": entry.source,
    }


def _parse_row_label(
    texts: Mapping[str, str], values: Cells, mapping: FieldColumnMapping, label: Label | None
) -> Label:
    """Return the label of a row from its columns `label` and `is_fake`.

    Raise `InvalidValueError` if both are missing without a default, one is invalid, or they differ.
    """
    word, flag = texts.get("label", "").lower(), None
    if not cells.is_blank_cell(values.get("is_fake")):
        cell = values["is_fake"]
        key = cell.strip().lower() if isinstance(cell, str) else cell
        if not isinstance(key, str | int | float) or key not in _FLAGS:
            cells.raise_invalid_cell("is_fake", cell, _WRITE_FLAG)
        flag = _FLAGS[key]
    if flag is not None and not word:
        return flag
    if label is not None and not mapping.has_label_column:
        return label
    if word not in LABELS:
        if "label" not in mapping and "is_fake" in mapping:
            cells.raise_invalid_cell("is_fake", values.get("is_fake"), _WRITE_FLAG)
        cells.raise_invalid_cell("label", word, f"Write one of {', '.join(LABELS)}")
    if flag not in {None, LABELS[word]}:
        cells.raise_invalid_cell(
            "is_fake", values["is_fake"], f"The label is {word}: correct one of them"
        )
    return LABELS[word]


@lru_cache(maxsize=1024)  # many clips have one creator
def _build_generated_origin(creator: str, setting: str) -> Origin:
    return Generated(creator=creator, setting=setting)


def _parse_nested_list(values: Cells, field: str, adapter: TypeAdapter[Any]) -> Any:
    """Parse the list in `field`: a nested list in JSONL and Parquet, JSON text in CSV."""
    cell = values.get(field)
    if cell == [] or cells.is_blank_cell(cell):
        return ()
    try:
        value = parse_json(cell.encode()) if isinstance(cell, str) else cell
        _require_few_nested_values(value, NESTED_VALUES)
        return adapter.validate_python(value)
    except (ValidationError, RecursionError, ValueError) as error:
        first = "not JSON" if not isinstance(error, InvalidValueError) else str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]["msg"]
        cells.raise_invalid_cell(field, cell, f"{first}. Use the format that `unreel` writes")


def _require_few_nested_values(value: object, left: int) -> int:
    """Return the rest of `left` values after a nested cell; raise `InvalidValueError` if it has more."""
    if not isinstance(value, Mapping | list):
        return left
    left -= len(value)
    if left < 0:
        raise InvalidValueError(f"more than {NESTED_VALUES} values in one cell")
    for part in value.values() if isinstance(value, Mapping) else value:
        left = _require_few_nested_values(part, left)
    return left


def _get_video_path(cell: object) -> object:
    """Return the path in a Hugging Face video cell, which is a path or a struct with a path."""
    if isinstance(cell, Mapping):
        return cell.get("path")
    return cell


def _format_frame_rate(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}"


def read_clip_table(
    table: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of a CSV, TSV, JSONL or Parquet table, as a stream.

    A location column and a label column are required. A label is `real`, `generated` or `fake`, or
    0 or 1 in the column `is_fake`. All other columns of `unreel.benchmarks.columns.KNOWN` are read
    if present. `mapping` gives the column of a field that has another name. Paths are relative to
    the table's directory, and may lead outside it only if `outside` is true.
    """
    binding = map_fields_to_columns(
        str(table), read_table_column_names(table), mapping, outside=outside
    )
    for field in ("location", "label"):
        if field not in binding and not (field == "label" and binding.has_label_column):
            raise UnreadableSourceError(
                str(table),
                f"no column contains the {field}",
                f"Name it with a mapping: {field}=COLUMN",
            )
    for number, row in enumerate(read_table_rows(table), start=1):
        yield parse_entry_or_reject(row, binding, number=number)
