"""Reader of VideoRealBench: a table of realism scores with reasons, one row for each clip.

The paper publishes no layout, so unreel defines this layout. Alternative column names are in
`unreel.benchmarks.columns.KNOWN`; a mapping can set any other name. Columns:

| column | meaning |
|---|---|
| `video` | path or URL of the clip |
| `video_id` | name of the clip; the path if missing |
| `split` | `train` (2,309 rows in the paper) or `test` (988) |
| `model`, `prompt` | creator of the clip, and its text prompt |
| `error_family` | `human-states`, `object-states`, `human-object-interactions`; optional |
| `score`, `problem_description`, `standard_adherence` | the agreed rating, or instead: |
| `score_1`, `problem_description_1`, `standard_adherence_1`, ... `_3` | rating per annotator |
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from unreel.benchmarks import cells
from unreel.benchmarks.columns import map_fields_to_columns
from unreel.benchmarks.entry import Rejected, Row
from unreel.benchmarks.table_entries import get_row_name, has_score_columns, parse_entry
from unreel.benchmarks.tables import read_table_column_names, read_table_rows
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label


def read_realism_table(
    table: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of the table of realism scores.

    Without a label column, all clips are labelled generated.

    Raises:
        UnreadableSourceError: The table has no location column or no score columns.
    """
    binding = map_fields_to_columns(
        str(table), read_table_column_names(table), mapping, outside=outside
    )
    if "location" not in binding or not has_score_columns(binding):
        remedy = "Name them with a mapping: location=COLUMN score=COLUMN"
        raise UnreadableSourceError(str(table), "no columns of clips and scores", remedy)
    for number, row in enumerate(read_table_rows(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            entry = parse_entry(row, binding, label=Label.GENERATED)
            if entry.rating is None:
                cells.raise_invalid_cell(
                    "score", None, "Write the agreed score, or those of three annotators"
                )
            yield entry
        except InvalidValueError as error:
            yield Rejected(get_row_name(row, binding, number=number), str(error))
