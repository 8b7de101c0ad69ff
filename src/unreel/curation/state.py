"""State of a curation between its steps, and the recipe and context that each step gets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.curation.segment import (
    CONTRADICTION,
    GIVE_LICENCE,
    NO_LICENCE,
    NONE_LEFT_OUT,
    QUARANTINE,
    REJECTED,
    SegmentExclusions,
)
from unreel.curation.segment_table import (
    NO_PIECES,
    CurationStepResult,
    SegmentTable,
    SegmentWorkDirectory,
)
from unreel.curation.step_execution import CurationContext
from unreel.recipes.validation import RecipeSection, Seed, Text


class CurationGlobalSettings(RecipeSection):
    """Settings at the top of a curation recipe, which apply to all steps."""

    name: Text
    """Name of the benchmark."""
    seed: Seed = 0
    """Seed of all random choices: splits, traces, groups, permutations of the audit."""
    require_licence: bool = True
    """Whether to exclude clips for which neither the source nor the recipe names a licence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationJob:
    """Input of each step of a curation: the global settings, the context and the folder of the recipe."""

    recipe: CurationGlobalSettings
    """Complete recipe; a step uses the global settings and only its own section."""
    root: Path
    """Folder of the recipe, to which its paths are relative."""
    context: CurationContext
    accept_leak: bool = False

    @property
    def directory(self) -> SegmentWorkDirectory:
        """Return the directory that stores the segments of the curation between two steps."""
        return SegmentWorkDirectory.of(self.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """Result of the label audit for the benchmark: a text for the data card, and a JSON document."""

    text: str
    document: Mapping[str, Any]
    leaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBenchmark:
    """Result of writing a frozen benchmark: location, numbers of clips and digest."""

    place: str
    clips: Mapping[str, int]
    """Number of clips by split."""
    digest: str
    """SHA-256 of the checksum file; equal for equal benchmarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationState:
    """State of a curation: the remaining segments, the exclusions, and the results of finished steps."""

    segments: SegmentTable = NO_PIECES
    left_out: SegmentExclusions = NONE_LEFT_OUT
    audit: AuditSummary | None = None
    frozen: FrozenBenchmark | None = None
    steps: tuple[str, ...] = ()
    """Names of the finished steps."""

    def after(self, result: CurationStepResult) -> "CurationState":
        """Return the state after a step: the remaining segments, and all exclusions so far."""
        return replace(self, segments=result.segments, left_out=self.left_out + result.left_out)

    def require_pieces(self, step: str) -> None:
        """Raise `InvalidSettingError` if no segment is left for the step `step`, which needs one."""
        if not self.segments:
            counts = ", ".join(f"{n} {reason}" for reason, n in self.reasons.items())
            raise InvalidSettingError(
                step,
                f"no clip is left to {step} ({counts or 'there was none'})",
                GIVE_LICENCE
                if self.lacks_licences
                else f"See {QUARANTINE} in the working folder for what to do",
            )

    @property
    def reasons(self) -> Mapping[str, int]:
        """Return the number of excluded segments by step and reason."""
        tally = {f"{step}: {reason}": n for (step, reason), n in self.left_out.counts.items()}
        return dict(sorted(tally.items()))

    @property
    def lacks_licences(self) -> bool:
        """Return whether clips were excluded because they have no licence."""
        return NO_LICENCE in self.left_out.by_reason

    @property
    def leaks(self) -> bool:
        """Return whether the audit found that the labels leak."""
        return self.audit is not None and self.audit.leaks

    @property
    def n_failed(self) -> int:
        """Count the files and clips that were excluded because of an error, not by a step's decision."""
        failures = {*FailureReason, REJECTED, CONTRADICTION}
        return sum(n for reason, n in self.left_out.by_reason.items() if reason in failures)
