"""Dataset card of a published campaign: question, annotators, agreement and excluded clips."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.annotation.publishing.consensus_entries import has_traces_on_real_clip
from unreel.annotation.publishing.publishable_campaign import (
    ANNOTATIONS,
    CONSENSUS,
    PublishableCampaign,
)
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.human_scores import AGAINST, PEOPLE, AnnotatorScoreRow
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.table_formats import build_markdown_table
from unreel.protocols.protocol import get_protocol

CARD: Final = "README.md"
_LISTED: Final = 200
"""Maximum number of excluded clips that are listed by name; `consensus.jsonl` has all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignCardContent:
    """Data that the dataset card of a published campaign shows."""

    edition: PublishableCampaign
    entries: Sequence[Entry]
    """Original entries of the benchmark, before the consensus was added."""
    n_clips: int
    """Number of clips in the published benchmark."""
    n_undecided: int = 0
    """Number of published clips without a consensus."""
    left_out: Sequence[Rejected]
    people: Sequence[AnnotatorScoreRow]


def format_campaign_card(card: CampaignCardContent) -> str:
    """Format the card as Markdown with a dataset hub's header, without paths, machine names or addresses."""
    campaign = card.edition.campaign
    parts = [
        _format_card_header(campaign.name),
        f"# {campaign.name}",
        f"{card.n_clips:,} clips with the consensus of annotators for `{campaign.interface.value}`.",
        "## How it was made",
        build_markdown_table(("property", "value"), _iter_campaign_facts(card)),
        "## Agreement",
        _format_agreement_section(card),
        "## Quality of the annotators",
        _format_annotator_scores_section(card.people),
        "## Left out",
        _format_excluded_clips_section(card.left_out),
        "## Files",
        _format_files_table(),
        "## Guidelines",
        _quote_markdown(campaign.guidelines),
    ]
    return "\n\n".join(parts) + "\n"


def _format_card_header(name: str) -> str:
    lines = [
        f"pretty_name: {json.dumps(name)}",
        "license: other",
        "task_categories: [video-classification]",
        "tags: [video, ai-generated, human-annotated, unreel]",
    ]
    return "\n".join(["---", *lines, "---"])


def _iter_campaign_facts(card: CampaignCardContent) -> Iterator[tuple[str, object]]:
    edition = card.edition
    campaign, consensus = edition.campaign, edition.consensus
    rule = consensus.rule
    yield "tasks", f"{len(edition.tasks):,}"
    yield "judged", f"{len(consensus.tasks):,}"
    yield "settled", f"{len(consensus.settled):,}"
    yield "not settled", f"{len(consensus.unsettled):,}"
    if edition.keep_undecided:
        yield "kept without a decision, `undecided` in `metadata.jsonl`", f"{card.n_undecided:,}"
    yield "judgements", f"{len(edition.opinions):,} by {len(edition.annotators)} people"
    yield "annotators per task", f"{campaign.overlap}"
    yield (
        "consensus",
        (f"{rule.method.value}, quorum {rule.quorum}, min-overlap {rule.min_overlap}"),
    )
    yield "with dissent", f"{sum(bool(s.dissent) for s in consensus.settled.values()):,}"
    if edition.polished:
        merged = f"{len(edition.polished):,} merged by a language model and confirmed by people"
        yield "rationales", merged
    yield "annotations that could not be read", f"{edition.n_quarantined:,}"
    yield "people who were excluded", f"{edition.n_excluded:,}"
    yield "real clips with a consensus on faults", f"{_count_real_clips_with_traces(card):,}"
    yield "guidelines, interface", f"{campaign.guidelines_version}, {campaign.interface_version}"


def _count_real_clips_with_traces(card: CampaignCardContent) -> int:
    entries = {entry.name: entry for entry in card.entries}
    settled = card.edition.consensus.settled
    return sum(
        has_traces_on_real_clip(entries[task.names[0]], settled[id_].value)
        for id_, task in card.edition.tasks.items()
        if id_ in settled and task.names[0] in entries
    )


def _format_agreement_section(card: CampaignCardContent) -> str:
    agreement = card.edition.agreement
    if not agreement.overall:
        return "Not measured."
    columns = ("figure", "value", "95 % interval", "n")
    rows = [(name, *_format_measured_cells(value)) for name, value in agreement.overall.items()]
    parts = [
        build_markdown_table(columns, rows),
        describe_interval_coverage(agreement.overall.values()),
    ]
    kinds = [
        (kind.value, metric.value, *_format_measured_cells(value))
        for kind, metrics in agreement.by_category.items()
        for metric, value in metrics.items()
    ]
    if kinds:
        parts.append(build_markdown_table(("category", *columns), kinds))
    return "\n\n".join(parts)


def _format_annotator_scores_section(people: Sequence[AnnotatorScoreRow]) -> str:
    if not people:
        return "No metric of models can be computed for the annotators."
    rows = []
    for row in people:
        instrument = get_protocol(row.protocol)
        name = instrument.figures.ranks_by(judged=False)
        figure = instrument.figures[name]
        value = _format_measured_cells(row[name], places=figure.places)
        rows.append((row.protocol, row.name, figure.title, *value, AGAINST[row.against]))
    columns = ("protocol", "who", "metric", "value", "95 % interval", "n", "against")
    return f"{build_markdown_table(columns, rows)}\n\nAll figures are in `{PEOPLE}`."


def _format_excluded_clips_section(rejected: Sequence[Rejected]) -> str:
    if not rejected:
        return "Nothing."
    tally = Counter(left.why for left in rejected)
    parts = [build_markdown_table(("reason", "clips"), tally.most_common())]
    listed = rejected[:_LISTED]
    parts.append(
        build_markdown_table(("clip", "reason"), ((left.name, left.why) for left in listed))
    )
    if len(rejected) > len(listed):
        parts.append(f"{len(rejected) - len(listed):,} more are not listed.")
    return "\n\n".join(parts)


def _format_files_table() -> str:
    rows = (
        ("metadata.jsonl", "one row for each clip, with its truth and the judgements behind it"),
        ("media/", "the clips, unchanged"),
        (
            CONSENSUS,
            "each task: the consensus, who agreed and who disagreed, or why there is none",
        ),
        (ANNOTATIONS, "each judgement, unchanged"),
        (PEOPLE, "each annotator and the majority, with the metrics of the protocols"),
    )
    return build_markdown_table(("file", "content"), rows)


def _quote_markdown(text: str) -> str:
    """Quote the guidelines in Markdown, so that their text cannot change the structure of the card."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or "None."


def _format_measured_cells(value: Measured, *, places: int = 3) -> tuple[str, str, str]:
    if isinstance(value, Estimate):
        ends = f"{value.low:.{places}f} to {value.high:.{places}f}"
        return f"{value.value:.{places}f}", ends, f"{value.n:,}"
    return "not measured", value.why, ""
