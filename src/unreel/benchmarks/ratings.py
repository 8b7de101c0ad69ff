"""Realism scores of a row: the agreed rating, or the merged ratings of three annotators."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.columns import ColumnBinding
from unreel.benchmarks.tables import Cells
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import ErrorFamily, Rating

ANNOTATORS: Final = (1, 2, 3)


def has_scores(binding: ColumnBinding) -> bool:
    """Return whether a table has agreed scores, or the scores of all three annotators."""
    return "score" in binding or all(f"score_{number}" in binding for number in ANNOTATORS)


def parse_agreed_rating(row: Cells, binding: ColumnBinding) -> Rating | None:
    """Return the agreed rating in `row`; `None` if the row has no agreed score."""
    if cells.is_blank(cell := binding.cell(row, "score")):
        return None
    return Rating(
        score=cells.parse_count_cell(cell, "score"),
        problem=cells.parse_text_cell(binding.cell(row, "problem"), "problem"),
        adherence=cells.parse_text_cell(binding.cell(row, "adherence"), "adherence"),
        family=parse_error_family(row, binding),
    )


def parse_annotator_ratings(row: Cells, binding: ColumnBinding) -> tuple[Rating, ...]:
    """Return the ratings of the three annotators; an empty tuple if the row has no annotator score."""
    fields = [f"score_{number}" for number in ANNOTATORS]
    if all(cells.is_blank(binding.cell(row, field)) for field in fields):
        return ()
    return tuple(_parse_rating(row, binding, number) for number in ANNOTATORS)


def merge_ratings(ratings: Sequence[Rating]) -> Rating:
    """Merge the ratings of three annotators into one rating.

    If two or three annotators gave the same score, use that score with the reasons of the first of
    them. Otherwise use the rounded mean score, with the reasons of the annotator closest to it.
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


def parse_error_family(row: Cells, binding: ColumnBinding) -> ErrorFamily | None:
    """Return the error family of the clip, from `human states` or `human-states`."""
    said = cells.parse_text_cell(binding.cell(row, "error_family"), "error_family")
    word = said.lower().replace("_", "-").replace(" ", "-")
    families = [family.value for family in ErrorFamily]
    if said and word not in families:
        cells.refuse("error_family", said, f"Write one of {', '.join(families)}, or nothing")
    return ErrorFamily(word) if said else None


def _parse_rating(row: Cells, binding: ColumnBinding, number: int) -> Rating:
    return Rating(
        score=cells.parse_count_cell(binding.cell(row, f"score_{number}"), f"score_{number}"),
        problem=cells.parse_text_cell(binding.cell(row, f"problem_{number}"), f"problem_{number}"),
        adherence=cells.parse_text_cell(
            binding.cell(row, f"adherence_{number}"), f"adherence_{number}"
        ),
    )
