"""Content of a campaign for publication, aliases of annotators, and files with all answers."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unreel.annotation.agreement import CampaignAgreement, measure_annotator_agreement
from unreel.annotation.campaign import AnnotationInterface, AnnotationTask, Campaign
from unreel.annotation.campaign_consensus import compute_campaign_consensus
from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    ConsensusRule,
    Dissent,
    Outcome,
    SettledTask,
)
from unreel.annotation.judgements import VALUES, AnyValue, LedgerNotice
from unreel.annotation.opinion import AnnotatorOpinion
from unreel.annotation.publishing.human_scores import AnnotatorScoringInput
from unreel.annotation.rationale_polishing import PolishedRationale, read_confirmed_rationales
from unreel.benchmarks.entry import Entry
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory

_MAKERS_TRUTH = {AnnotationInterface.REALITY, AnnotationInterface.PASS_FAIL}
"""Interfaces whose answers do not become ground truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishableCampaign:
    """Campaign with all published content: tasks, opinions, consensus, agreement and rationales."""

    campaign: Campaign
    tasks: Mapping[str, AnnotationTask]
    """All pushed tasks, by id."""
    opinions: Sequence[AnnotatorOpinion]
    """Newest judgement of each annotator on each task, without excluded annotators."""
    consensus: CampaignConsensus
    agreement: CampaignAgreement = field(default_factory=lambda: CampaignAgreement(overall={}))
    polished: Mapping[str, PolishedRationale] = field(default_factory=dict)
    """Rationales that a model merged and people confirmed, by task id."""
    n_quarantined: int = 0
    """Number of quarantined annotations."""
    n_excluded: int = 0
    """Number of excluded annotators."""
    swapped: frozenset[tuple[str, str]] = frozenset()
    """Annotator and task id of each assignment whose second clip was shown on the left."""
    keep_undecided: bool = False
    """Whether clips without a consensus are published with their original truth."""

    def __post_init__(self) -> None:
        interface = self.campaign.interface
        if self.keep_undecided and interface not in _MAKERS_TRUTH:
            raise InvalidSettingError(
                "--keep-undecided",
                f"for {interface.value} the ground truth is the consensus",
                "Leave it out, or lower --quorum",
            )

    @property
    def annotators(self) -> list[str]:
        """Return the names of all annotators with a valid judgement, sorted."""
        return sorted({opinion.annotator for opinion in self.opinions})

    def said_by_task(self, aliases: Mapping[str, str]) -> dict[str, dict[str, AnyValue]]:
        """Return the annotators' answers by task id, then by the published name of the annotator."""
        answers: dict[str, dict[str, AnyValue]] = {}
        for opinion in sorted(self.opinions, key=lambda o: aliases[o.annotator]):
            answers.setdefault(opinion.task.id, {})[aliases[opinion.annotator]] = opinion.value
        return answers


def assign_annotator_aliases(
    annotators: Sequence[str], *, seed: int, named: bool
) -> dict[str, str]:
    """Return the published name of each annotator: the own name if `named`, else a random number."""
    if named:
        return {name: name for name in annotators}
    order = sorted(annotators)
    random.Random(seed).shuffle(order)  # noqa: S311  a lot, no secret: the ledger knows
    width = len(str(len(order)))
    return {name: f"annotator-{i:0{width}d}" for i, name in enumerate(order, start=1)}


def build_publishable_campaign(
    records: CampaignRecords,
    rule: ConsensusRule,
    *,
    notices: Sequence[LedgerNotice] = (),
    seed: int = 0,
) -> PublishableCampaign:
    """Build the campaign, its consensus by `rule` with confirmed polished texts, and its agreement."""
    interface = records.campaign.interface
    opinions = sorted(iter_valid_judgements(records), key=lambda o: (o.task.id, o.annotator))
    return PublishableCampaign(
        campaign=records.campaign,
        tasks=records.tasks,
        opinions=opinions,
        consensus=compute_campaign_consensus(records, rule),
        polished=read_confirmed_rationales(records, rule, notices),
        agreement=measure_annotator_agreement(opinions, interface=interface, seed=seed),
        n_quarantined=len(records.quarantined),
        n_excluded=len(records.excluded),
        swapped=frozenset(by for by, a in records.assignments.items() if a.swapped),
    )


def build_annotator_scoring_input(
    campaign: PublishableCampaign, entries: Mapping[str, Entry], *, seed: int
) -> AnnotatorScoringInput:
    """Build the input for scoring the annotators of a campaign; `entries` are its clips by name."""
    return AnnotatorScoringInput(
        interface=campaign.campaign.interface,
        rule=campaign.consensus.rule,
        opinions=campaign.opinions,
        consensus=campaign.consensus,
        entries=entries,
        seed=seed,
        swapped=campaign.swapped,
    )


CONSENSUS = "consensus.jsonl"
ANNOTATIONS = "annotations.jsonl"
REVIEWER = "reviewer"
"""Placeholder name for a person who decided but is not an annotator."""


def write_consensus_and_answers(
    directory: OutputDirectory, campaign: PublishableCampaign, aliases: Mapping[str, str]
) -> None:
    """Write two JSON Lines files: the consensus and dissent of each task, and all judgements."""
    _write_json_lines(directory, CONSENSUS, _iter_consensus_rows(campaign, aliases))
    _write_json_lines(directory, ANNOTATIONS, _iter_annotation_rows(campaign, aliases))


def _iter_consensus_rows(
    campaign: PublishableCampaign, aliases: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for task in campaign.tasks.values():
        outcome = campaign.consensus.tasks.get(task.id)
        head = {"clips": list(task.names), "task": task.id}
        yield head | (
            _build_outcome_fields(outcome, aliases)
            if outcome
            else {"settled": False, "why": "not-judged"}
        )


def _build_outcome_fields(outcome: Outcome, aliases: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(outcome, SettledTask):
        return {"settled": False, "why": outcome.why.value, "detail": outcome.detail}
    return {
        "settled": True,
        "value": _convert_answer_to_json(outcome.value),
        "method": outcome.method.value,
        "support": [aliases.get(name, REVIEWER) for name in outcome.support],
        "dissent": [_build_dissent_fields(dissent, aliases) for dissent in outcome.dissent],
        "words_of": aliases.get(outcome.words_of, REVIEWER) if outcome.words_of else "",
    }


def _build_dissent_fields(dissent: Dissent, aliases: Mapping[str, str]) -> dict[str, Any]:
    name, value = dissent
    return {"annotator": aliases.get(name, REVIEWER), "value": _convert_answer_to_json(value)}


def _iter_annotation_rows(
    campaign: PublishableCampaign, aliases: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield all answers sorted by clip and alias; this order reveals neither identities nor times."""
    opinions = sorted(campaign.opinions, key=lambda o: (o.task.names, aliases[o.annotator]))
    for opinion in opinions:
        yield {
            "clips": list(opinion.task.names),
            "annotator": aliases[opinion.annotator],
            "value": _convert_answer_to_json(opinion.value),
        }


def _convert_answer_to_json(value: AnyValue) -> Any:
    plain = VALUES.dump_python(value, mode="json")
    for trace in plain.get("traces", ()):
        trace["categories"].sort()  # sets have no order; sorted for reproducible files
    return plain


def _write_json_lines(
    directory: OutputDirectory, name: str, lines: Iterable[Mapping[str, Any]]
) -> None:
    with directory.create_text(name) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
