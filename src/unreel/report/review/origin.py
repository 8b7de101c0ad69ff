"""What a file itself says, before any model is asked."""

from dataclasses import dataclass

from unreel.core.facts import ClipFacts
from unreel.report.review.check import Check
from unreel.report.review.programs import tell_passes, tell_programs
from unreel.report.review.provenance import Provenance, tell_credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """All that was looked for in the file, and its manifest."""

    provenance: Provenance
    checks: tuple[Check, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Sentences by which the file itself says that it was generated."""
        return tuple(check.claim for check in self.checks if check.claim)


def tell_origin(facts: ClipFacts, *, marks: Check, provenance: Provenance) -> Origin:
    """What was found, the strongest kind of evidence first."""
    own = (marks, tell_credentials(provenance), tell_programs(facts), tell_passes(facts))
    return Origin(provenance=provenance, checks=own)
