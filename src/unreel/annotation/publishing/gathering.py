"""Collection of the data to publish from a ledger."""

from collections.abc import Mapping, Sequence

from unreel.annotation.agreement import measure_agreement
from unreel.annotation.consensus.rule import ConsensusRule
from unreel.annotation.ledger.notices import LedgerNotice
from unreel.annotation.polish.using import confirmed_words
from unreel.annotation.publishing.edition import CampaignEdition
from unreel.annotation.publishing.humans import CampaignPoll
from unreel.annotation.reading import CampaignRecords, judgements
from unreel.annotation.settling import settle
from unreel.benchmarks.entry import Entry


def gather(
    records: CampaignRecords,
    rule: ConsensusRule,
    *,
    notices: Sequence[LedgerNotice] = (),
    seed: int = 0,
) -> CampaignEdition:
    """Return the present campaign with its consensus by `rule` and the agreement of the annotators.

    Texts that were polished and confirmed in `notices` replace the originals.
    """
    interface = records.campaign.interface
    opinions = sorted(judgements(records), key=lambda each: (each.task.id, each.annotator))
    return CampaignEdition(
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


def poll_of(edition: CampaignEdition, entries: Mapping[str, Entry], *, seed: int) -> CampaignPoll:
    """The same, for measuring people: `entries` are the clips by name."""
    return CampaignPoll(
        interface=edition.campaign.interface,
        rule=edition.consensus.rule,
        opinions=edition.opinions,
        consensus=edition.consensus,
        entries=entries,
        seed=seed,
        swapped=edition.swapped,
    )
