"""`open_campaign`: progress, consensus and quality of a campaign, from Python."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from unreel.core.errors import UnknownNameError
from unreel.core.registry import LazyImport
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import read_environment_settings

if TYPE_CHECKING:
    from unreel.annotation.agreement import CampaignAgreement
    from unreel.annotation.campaign_state import (
        AnnotatorJudgement,
        CampaignProgress,
        CampaignRecords,
    )
    from unreel.annotation.consensus.outcome import CampaignConsensus, ConsensusRule
    from unreel.annotation.judgements import LedgerNotice
    from unreel.annotation.pairs import ClipRanking
    from unreel.annotation.publishing.publish import PublicationResult
    from unreel.annotation.quality import CampaignQuality


class RuleKeys(TypedDict, total=False):
    """Keyword arguments of a consensus rule."""

    quorum: int
    """Minimum number of people who must agree on an answer or a trace; 2 by default."""
    min_overlap: int
    """Minimum number of judgements per task; 2 by default."""
    method: Literal["majority", "dawid-skene"]
    """Method of the consensus: equal weights of annotators, or weights by estimated accuracy."""
    reviews: int
    """Number of people outside the task who must have accepted its consensus; 0 by default."""


def build_consensus_rule(
    *, quorum: int = 2, min_overlap: int = 2, method: str = "majority", reviews: int = 0
) -> "ConsensusRule":
    """Return the consensus rule with these settings.

    Raises:
        InvalidSettingError: A number is too small.
        UnknownNameError: No method has that name.
    """
    from unreel.annotation.consensus.outcome import ConsensusMethod, ConsensusRule

    methods = [m.value for m in ConsensusMethod]
    if method not in methods:
        raise UnknownNameError("method", method, methods)
    weights = ConsensusMethod(method)
    return ConsensusRule(quorum=quorum, min_overlap=min_overlap, method=weights, reviews=reviews)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredCampaign:
    """A campaign at the time of `open_campaign`; open it again to include later answers."""

    records: "CampaignRecords"
    """Tasks, and the newest judgement of each annotator about each task."""
    notices: "tuple[LedgerNotice, ...]"
    """Notices in the ledger: decisions about annotators, tasks and texts."""

    def status(self) -> "CampaignProgress":
        """Return the progress, speed and agreement of each annotator."""
        from unreel.annotation.campaign_state import measure_campaign_progress

        return measure_campaign_progress(self.records)

    def consensus(self, **rule: Unpack[RuleKeys]) -> "CampaignConsensus":
        """Return the consensus of each judged task, with the annotators who disagree."""
        from unreel.annotation.campaign_state import compute_campaign_consensus

        return compute_campaign_consensus(self.records, build_consensus_rule(**rule))

    def agreement(self, *, seed: int = 0) -> "CampaignAgreement":
        """Return the agreement of the annotators, with intervals."""
        from unreel.annotation.agreement import measure_annotator_agreement

        interface = self.records.campaign.interface
        return measure_annotator_agreement(self._judgements(), interface=interface, seed=seed)

    def quality(self, *, passing: float = 0.8, seed: int = 0) -> "CampaignQuality":
        """Return the quality of each annotator; `passing` is the minimum accuracy on known clips."""
        from unreel.annotation.quality import measure_annotator_quality

        interface = self.records.campaign.interface
        return measure_annotator_quality(
            self._judgements(), interface=interface, passing=passing, seed=seed
        )

    def rank(self, *, seed: int = 0) -> "ClipRanking":
        """Rank the clips by preferences, or by the answers to one question.

        Raises:
            InvalidValueError: The campaign has no comparison.
        """
        from unreel.annotation.pairs import rank_clips

        return rank_clips(self._judgements(), seed=seed)

    def publish(
        self,
        out: str | Path,
        *,
        benchmark: str | Path | None = None,
        media: Literal["copy", "link"] = "copy",
        keep_undecided: bool = False,
        names: bool = False,
        seed: int = 0,
        **rule: Unpack[RuleKeys],
    ) -> "PublicationResult":
        """Write the consensus to the new folder `out` as a benchmark.

        Args:
            out: New folder for the benchmark.
            benchmark: Present path of the benchmark; its path at the push by default.
            media: `copy`, or `link` for hard links.
            keep_undecided: Keep clips without a consensus, with their original label.
            names: Publish the annotators' names instead of aliases.
            seed: Seed of the intervals and of the aliases.
            rule: Settings of the consensus, as in `consensus`.

        Raises:
            UnreadableSourceError: `out` is not empty, or there is nothing to publish.
        """
        from unreel.annotation.publishing.publish import publish_campaign_as_benchmark
        from unreel.annotation.publishing.publishable_campaign import build_publishable_campaign

        edition = build_publishable_campaign(
            self.records, build_consensus_rule(**rule), notices=self.notices, seed=seed
        )
        path = edition.campaign.benchmark if benchmark is None else str(benchmark)
        edition = replace(
            edition,
            keep_undecided=keep_undecided,
            campaign=replace(edition.campaign, benchmark=path),
        )
        return publish_campaign_as_benchmark(
            edition, Path(out), media=media, named=names, seed=seed
        )

    def _judgements(self) -> "list[AnnotatorJudgement]":
        from unreel.annotation.campaign_state import iter_valid_judgements

        return list(iter_valid_judgements(self.records))

    def __repr__(self) -> str:
        campaign, n_tasks = self.records.campaign, len(self.records.tasks)
        return sanitise_line(f"<StoredCampaign {campaign.name}: {n_tasks} tasks>")


def open_campaign(name: str, *, ledger: str | Path | None = None) -> StoredCampaign:
    """Read a campaign of `unreel annotate` from its ledger.

    Args:
        name: Name of the campaign.
        ledger: `postgresql://USER@HOST/DATABASE`, or a file; `UNREEL_LEDGER` by default.

    Raises:
        InvalidSettingError: No ledger is named.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No campaign has that name.
    """
    from unreel.annotation.campaign_state import read_campaign_records

    connection = "unreel.annotation.ledger.connection"
    resolve_url = LazyImport(f"{connection}:resolve_ledger_url", "annotate").load()
    url = resolve_url(None if ledger is None else str(ledger), read_environment_settings())
    with LazyImport(f"{connection}:open_ledger", "annotate")(url) as opened:
        records = read_campaign_records(opened, name)
        return StoredCampaign(records=records, notices=tuple(opened.notices(name)))
