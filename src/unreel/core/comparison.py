"""Comparison of reviewers on the same clips."""

from collections.abc import Iterator
from dataclasses import dataclass

from unreel.core.estimate import Measured
from unreel.core.question import Instrument
from unreel.core.safe_text import sanitise_line
from unreel.core.table_formats import build_html_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of one metric between two reviewers on the clips that both judged."""

    metric: str
    first: float | None
    """The first one's metric on these clips; `None` if unmeasured."""
    second: float | None
    difference: Measured
    """The first less the second."""
    p: float | None = None
    """Two-sided p-value; `None` if unmeasured."""
    p_corrected: float | None = None
    """The same among all differences that are shown, by Holm's correction."""
    detectable: float | None = None
    """Smallest true difference that these clips would show in 8 of 10 comparisons, among all that are shown;
    `None` where the difference was found or not measured."""

    def __str__(self) -> str:
        if self.p is None or self.p_corrected is None:
            return f"{self.metric}: {self.difference}"
        return f"{self.metric}: {self.difference}, p={self.p:.3g}, corrected {self.p_corrected:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of two reviewers, or of one under two conditions, on the clips that both judged."""

    first: str
    second: str
    n_common: int
    """Questions that both answered readably: the figures count these alone, those in `-all-clips` the invalid ones too."""
    n_sources: int
    """Number of their scenes; a clip without a scene counts as one."""
    n_invalid: int
    """Questions put to both that one of them, or both, did not answer readably."""
    n_unshared: int
    """Questions put to one of them alone."""
    differences: tuple[Difference, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether both gave a readable answer to every question of either."""
        return not self.n_invalid and not self.n_unshared

    def __str__(self) -> str:
        return f"{self.first} less {self.second}: {self.n_common} in common, {self.n_invalid + self.n_unshared} left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """Comparisons of every pair of several reviewers, with the number of tested differences."""

    instrument: Instrument
    comparisons: tuple[Comparison, ...]
    n_tests: int
    """Differences with a p-value: as many as the correction counts."""

    @property
    def is_complete(self) -> bool:
        """Return whether every comparison is complete."""
        return all(comparison.is_complete for comparison in self.comparisons)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __str__(self) -> str:
        lines = [f"{self.instrument}: {self.n_tests} differences, corrected by Holm"]
        for comparison in self.comparisons:
            lines += [str(comparison), *(f"  {diff}" for diff in comparison.differences)]
        return "\n".join(map(sanitise_line, lines))

    def _repr_html_(self) -> str:
        columns = ("metric", "first", "second", "difference", "p", "corrected")
        return "".join(
            build_html_table(
                str(comparison),
                columns,
                [
                    (
                        f.metric,
                        _format_number(f.first),
                        _format_number(f.second),
                        f.difference,
                        _format_number(f.p),
                        _format_number(f.p_corrected),
                    )
                    for f in comparison.differences
                ],
            )
            for comparison in self.comparisons
        )


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
