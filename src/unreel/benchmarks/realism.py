"""VideoRealBench: a table of realism scores with their reasons, one row for each clip.

The paper publishes no layout, so this one is ours. Columns, with other known names in
`unreel.benchmarks.columns.KNOWN` or any name through a mapping:

| column | meaning |
|---|---|
| `video` | path or URL of the clip |
| `video_id` | name of the clip; the path where it is absent |
| `split` | `train` (2,309 rows in the paper) or `test` (988) |
| `model`, `prompt` | who made the clip, from which text |
| `error_family` | `human-states`, `object-states` or `human-object-interactions`; may be absent |
| `score`, `problem_description`, `standard_adherence` | the agreed rating, or instead: |
| `score_1`, `problem_description_1`, `standard_adherence_1`, ... `_3` | one rating for each annotator |
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.columns import Binding, bind
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.records import entry_of, family_of, name_of
from unreel.benchmarks.tables import Cells, columns_of, read_table
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label, Rating

ANNOTATORS: Final = (1, 2, 3)


def read_realism(table: Path, mapping: Mapping[str, str] | None = None) -> Iterator[Row]:
    """One row for each row of `table`, read as it goes; without a label column all are generated."""
    binding = bind(str(table), columns_of(table), mapping)
    if "location" not in binding or not has_scores(binding):
        remedy = "Name them with a mapping: location=COLUMN score=COLUMN"
        raise UnreadableSourceError(str(table), "no columns of clips and scores", remedy)
    for number, row in enumerate(read_table(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            yield _entry(row, binding)
        except InvalidValueError as error:
            yield Rejected(name_of(row, binding, number=number), str(error))


def has_scores(binding: Binding) -> bool:
    """True when a table has agreed scores, or those of all three annotators."""
    return "score" in binding or all(f"score_{number}" in binding for number in ANNOTATORS)


def agree(ratings: Sequence[Rating]) -> Rating:
    """The rating that three annotators agree on.

    The score that two or three gave, with the reasons of the first who gave it; else the rounded
    mean, with the reasons of the annotator whose own score is closest to it.
    """
    if len(ratings) != len(ANNOTATORS):
        msg = f"agreement needs three ratings, got {len(ratings)}. Ask the missing annotators"
        raise InvalidValueError(msg)
    score, times = Counter(rating.score for rating in ratings).most_common(1)[0]
    if times == 1:
        mean = Fraction(sum(rating.score for rating in ratings), len(ratings))
        score = round(mean)  # thirds only: never a tie
    closest = min(ratings, key=lambda rating: abs(rating.score - score))
    return replace(closest, score=score)


def _entry(row: Cells, binding: Binding) -> Entry:
    entry = entry_of(row, binding, label=Label.GENERATED)
    if entry.rating is not None:
        return entry
    ratings = tuple(_rating(row, binding, number) for number in ANNOTATORS)
    rating = replace(agree(ratings), family=family_of(row, binding))
    return replace(entry, rating=rating, ratings=ratings)


def _rating(row: Cells, binding: Binding, number: int) -> Rating:
    return Rating(
        score=cells.whole(binding.cell(row, f"score_{number}"), f"score_{number}"),
        problem=cells.text(binding.cell(row, f"problem_{number}"), f"problem_{number}"),
        adherence=cells.text(binding.cell(row, f"adherence_{number}"), f"adherence_{number}"),
    )
