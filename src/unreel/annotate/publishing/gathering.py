"""From what a ledger holds to what is published."""

from collections.abc import Mapping

from unreel.annotate.agreement import measure_agreement
from unreel.annotate.consensus.deciding import decide
from unreel.annotate.consensus.reviewing import read_review
from unreel.annotate.consensus.rule import Rule
from unreel.annotate.publishing.edition import Edition
from unreel.annotate.publishing.humans import Poll
from unreel.annotate.reading import CampaignRecords, judgements
from unreel.benchmarks.entry import Entry


def gather(records: CampaignRecords, rule: Rule, *, seed: int = 0) -> Edition:
    """The campaign as it stands now, settled by `rule`, with how far people agree."""
    interface = records.campaign.interface
    opinions = sorted(judgements(records), key=lambda each: (each.task.id, each.annotator))
    return Edition(
        campaign=records.campaign,
        tasks=records.tasks,
        opinions=opinions,
        consensus=decide(
            opinions, rule, interface=interface, reviews=list(map(read_review, records.reviews))
        ),
        agreement=measure_agreement(opinions, interface=interface, seed=seed),
        n_quarantined=len(records.quarantined),
        n_excluded=len(records.excluded),
        swapped=frozenset(by for by, given in records.assignments.items() if given.swapped),
    )


def poll_of(edition: Edition, entries: Mapping[str, Entry], *, seed: int) -> Poll:
    """The same, for measuring people: `entries` are the clips by name."""
    return Poll(
        interface=edition.campaign.interface,
        rule=edition.consensus.rule,
        opinions=edition.opinions,
        consensus=edition.consensus,
        entries=entries,
        seed=seed,
        swapped=edition.swapped,
    )
