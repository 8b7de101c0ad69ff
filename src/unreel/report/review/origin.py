"""Information in the file itself, before any model is asked."""

from dataclasses import dataclass
from pathlib import Path

from unreel.core.clip import Clip
from unreel.core.facts import ClipFacts
from unreel.media.reader import MediaReader
from unreel.report.review.check import Check, marks_not_looked_for
from unreel.report.review.programs import tell_passes, tell_programs
from unreel.report.review.provenance import Provenance, read_provenance, tell_credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """All that was looked for in the file, and its manifest."""

    provenance: Provenance
    checks: tuple[Check, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Sentences by which the file itself says that it was generated."""
        return tuple(check.claim for check in self.checks if check.claim)


def read_origin(clip: Clip, *, reader: MediaReader, without_seccomp: bool, drawn: bool) -> Origin:
    """Return the origin stated by the file of `clip`; a `drawn` clip of this package has no marks."""
    file = Path(clip.location)
    provenance = read_provenance(file, without_seccomp=without_seccomp)
    if drawn:
        marks = marks_not_looked_for("the clip was drawn for this sample.")
    else:
        from unreel.report.review.marks import look_for_marks  # numbers: half a second to load

        marks = look_for_marks(file, reader)
    return tell_origin(clip.facts, marks=marks, provenance=provenance)


def tell_origin(facts: ClipFacts, *, marks: Check, provenance: Provenance) -> Origin:
    """Return the findings, strongest kind of evidence first."""
    own = (marks, tell_credentials(provenance), tell_programs(facts), tell_passes(facts))
    return Origin(provenance=provenance, checks=own)
