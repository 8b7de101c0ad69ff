"""Information in the file itself, before any model is asked."""

from dataclasses import dataclass
from pathlib import Path

from unreel.core.clip import Clip
from unreel.core.facts import ClipFacts
from unreel.media.reader import MediaReader
from unreel.report.review.check import FileCheck, marks_not_looked_for
from unreel.report.review.programs import check_encoding_passes, check_programs
from unreel.report.review.provenance import ProvenanceResult, check_credentials, read_provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """All that was looked for in the file, and its manifest."""

    provenance: ProvenanceResult
    checks: tuple[FileCheck, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Sentences by which the file itself says that it was generated."""
        return tuple(check.claim for check in self.checks if check.claim)


def read_origin(
    clip: Clip, *, reader: MediaReader, without_seccomp: bool, drawn: bool
) -> FileOrigin:
    """Return the origin stated by the file of `clip`; a `drawn` clip of this package has no marks."""
    file = Path(clip.location)
    provenance = read_provenance(file, without_seccomp=without_seccomp)
    if drawn:
        marks = marks_not_looked_for("the clip was drawn for this sample.")
    else:
        from unreel.report.review.marks import look_for_marks  # numbers: half a second to load

        marks = look_for_marks(file, reader)
    return describe_origin(clip.facts, marks=marks, provenance=provenance)


def describe_origin(
    facts: ClipFacts, *, marks: FileCheck, provenance: ProvenanceResult
) -> FileOrigin:
    """Return the findings, strongest kind of evidence first."""
    own = (
        marks,
        check_credentials(provenance),
        check_programs(facts),
        check_encoding_passes(facts),
    )
    return FileOrigin(provenance=provenance, checks=own)
