"""From what a ledger holds to what is published."""

from collections.abc import Mapping

from unreel.annotate.consensus.deciding import decide
from unreel.annotate.consensus.rule import Rule
from unreel.annotate.publishing.edition import Edition
from unreel.annotate.reading import CampaignRecords, judgements
from unreel.core.estimate import Measured


def gather(records: CampaignRecords, rule: Rule, *, agreement: Mapping[str, Measured]) -> Edition:
    """The campaign as it stands now, settled by `rule`."""
    opinions = sorted(judgements(records), key=lambda each: (each.task.id, each.annotator))
    return Edition(
        campaign=records.campaign,
        tasks=records.tasks,
        opinions=opinions,
        consensus=decide(opinions, rule, interface=records.campaign.interface),
        agreement=agreement,
        n_quarantined=len(records.quarantined),
        n_excluded=len(records.excluded),
        swapped=frozenset(by for by, given in records.assignments.items() if given.swapped),
    )
