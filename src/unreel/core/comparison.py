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
    """Metric of the first reviewer on these clips; `None` if unmeasured."""
    second: float | None
    difference: Measured
    """Metric of the first reviewer minus that of the second."""
    p: float | None = None
    """Two-sided p-value; `None` if unmeasured."""
    p_corrected: float | None = None
    """p-value corrected for all displayed differences, by Holm's method."""
    detectable: float | None = None
    """Smallest true difference that these clips would show in 8 of 10 comparisons, among all displayed differences;
    `None` if the difference was found or not measured."""

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
    """Number of questions that both answered readably. Metrics use only these, `-all-clips` ones also the invalid."""
    n_sources: int
    """Number of scenes of these questions; a clip without a scene counts as one."""
    n_invalid: int
    """Number of questions to both reviewers that at least one of them did not answer readably."""
    n_unshared: int
    """Number of questions that only one of the reviewers was asked."""
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
    """Number of differences with a p-value, for which the p-values are corrected."""

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
