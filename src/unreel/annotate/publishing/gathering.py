"""From what a ledger holds to what is published."""

from collections.abc import Mapping, Sequence

from unreel.annotate.agreement import measure_agreement
from unreel.annotate.consensus.rule import Rule
from unreel.annotate.ledger.notices import Notice
from unreel.annotate.polish.using import confirmed_words
from unreel.annotate.publishing.edition import Edition
from unreel.annotate.publishing.humans import Poll
from unreel.annotate.reading import CampaignRecords, judgements
from unreel.annotate.settling import settle
from unreel.benchmarks.entry import Entry


def gather(
    records: CampaignRecords, rule: Rule, *, notices: Sequence[Notice] = (), seed: int = 0
) -> Edition:
    """The campaign as it stands now, settled by `rule`, with how far people agree.

    Texts that `notices` say were polished and confirmed stand in the place of what they merge.
    """
    interface = records.campaign.interface
    opinions = sorted(judgements(records), key=lambda each: (each.task.id, each.annotator))
    return Edition(
        campaign=records.campaign,
        tasks=records.tasks,
        opinions=opinions,
        consensus=settle(records, rule),
        polished=confirmed_words(records, rule, notices),
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
