"""Publication of a campaign: a benchmark folder with its clips and the consensus as ground truth."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask
from unreel.annotation.consensus.outcome import SettledTask
from unreel.annotation.judgements import AnyValue
from unreel.annotation.publishing.publishable_campaign import (
    ANNOTATIONS,
    CONSENSUS,
    PublishableCampaign,
    assign_annotator_aliases,
    build_annotator_scoring_input,
    build_consensus_entry,
    build_undecided_entry,
    has_traces_on_real_clip,
    score_annotators,
    write_consensus_and_answers,
)
from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.human_scores import (
    AGAINST,
    PEOPLE,
    AnnotatorScoreRow,
    HumanScores,
    write_human_scores,
)
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import compute_benchmark_identity
from unreel.benchmarks.video_folder import write_video_folder
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import MediaError, UnreadableSourceError
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.output_files import PART, OutputDirectory
from unreel.core.table_formats import build_markdown_table
from unreel.protocols.protocol import get_protocol
from unreel.protocols.realism import REALISM
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE

CARD = "README.md"
_LISTED = 200
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


def _format_annotator_scores_section(annotator_rows: Sequence[AnnotatorScoreRow]) -> str:
    if not annotator_rows:
        return "No metric of models can be computed for the annotators."
    rows = []
    for row in annotator_rows:
        instrument = get_protocol(row.protocol)
        name = instrument.figures.ranks_by(judged=False)
        metric = instrument.figures[name]
        value = _format_measured_cells(row[name], places=metric.places)
        rows.append((row.protocol, row.name, metric.title, *value, AGAINST[row.against]))
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
        (CONSENSUS, "each task: the consensus, who agreed and who disagreed, or why there is none"),
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


Media = Literal["copy", "link"]
UNDECIDED = "undecided"
"""Column of `metadata.jsonl`: whether the clip has no consensus and keeps its original truth."""
_DRAFT = f"{PART}publishing"
_PROTOCOLS = {
    AnnotationInterface.TRACE: TRACE.instrument,
    AnnotationInterface.REALISM: REALISM.instrument,
}
"""Protocol of each interface whose consensus is ground truth; the others confirm only the label (`reality`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationResult:
    """Result of publishing a campaign: folder, counts, excluded clips and annotators' scores."""

    folder: Path
    n_clips: int
    protocol: str
    """Name of the protocol with the same question as the campaign, or of the nearest one."""
    n_undecided: int = 0
    """Number of published clips without a consensus, which keep their original truth."""
    left_out: tuple[Rejected, ...]
    people: tuple[AnnotatorScoreRow, ...]


def publish_campaign_as_benchmark(
    campaign: PublishableCampaign,
    out: Path,
    *,
    media: Media = "copy",
    named: bool = False,
    seed: int = 0,
) -> PublicationResult:
    """Write a campaign as a benchmark to the new folder `out`, atomically.

    Args:
        campaign: Content to publish.
        out: A missing or empty folder.
        media: `copy`, or `link` for hard links if the file system supports them.
        named: Whether to publish the annotators' own names instead of random numbers.
        seed: Seed of the random numbers, and of every interval.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    above = OutputDirectory(out.parent, published=True)
    draft = f"{_DRAFT}-{out.name}"
    above.remove_folder(draft)
    published = _write_publication(
        campaign, out.parent / draft, media=media, named=named, seed=seed
    )
    if out.exists():
        above.remove_folder(out.name)
    above.rename(draft, out.name)
    return replace(published, folder=out)


def _write_publication(
    campaign: PublishableCampaign, into: Path, *, media: Media, named: bool, seed: int
) -> PublicationResult:
    benchmark = open_benchmark(Path(campaign.campaign.benchmark))
    aliases = assign_annotator_aliases(campaign.annotators, seed=seed, named=named)
    entries = {entry.name: entry for entry in _iter_campaign_entries(benchmark, campaign.tasks)}
    undecided = set[str]()
    rows = _iter_published_rows(campaign, benchmark, entries, aliases, undecided)

    def more(entry: Entry) -> dict[str, object]:
        return {UNDECIDED: entry.name in undecided} if campaign.keep_undecided else {}

    written = write_video_folder(rows, into, root=benchmark.root, media=media, more=more)
    gone = (
        Rejected(name, "not in the benchmark any more")
        for name in _list_missing_clips(campaign, entries)
    )
    rejected = (*written.refused, *gone)
    if not written.n_entries:
        first = f": {rejected[0]}" if rejected else ""
        raise UnreadableSourceError(
            campaign.campaign.name,
            f"no clip is settled{first}",
            "Pull more judgements, or lower --quorum",
        )
    people = tuple(
        replace(row, name=aliases[row.name]) if row.kind == "annotator" else row
        for row in score_annotators(build_annotator_scoring_input(campaign, entries, seed=seed))
    )
    folder = OutputDirectory(into, published=True)
    write_consensus_and_answers(folder, campaign, aliases)
    known = compute_benchmark_identity(open_benchmark(into))
    fingerprint = known.fingerprint if known else ""
    write_human_scores(
        folder, HumanScores(campaign=campaign.campaign.name, fingerprint=fingerprint, rows=people)
    )
    n_undecided = len(undecided - {left.name for left in rejected})
    card = CampaignCardContent(
        edition=campaign,
        entries=tuple(entries.values()),
        n_clips=written.n_entries,
        n_undecided=n_undecided,
        left_out=rejected,
        people=people,
    )
    folder.write(CARD, format_campaign_card(card).encode())
    return PublicationResult(
        folder=into,
        n_clips=written.n_entries,
        protocol=_PROTOCOLS.get(campaign.campaign.interface, REALITY.instrument).protocol,
        n_undecided=n_undecided,
        left_out=rejected,
        people=people,
    )


def _iter_campaign_entries(
    benchmark: Benchmark, tasks: Mapping[str, AnnotationTask]
) -> Iterator[Entry]:
    names = {name for task in tasks.values() for name in task.names}
    return (row for row in benchmark if isinstance(row, Entry) and row.name in names)


def _list_missing_clips(campaign: PublishableCampaign, entries: Mapping[str, Entry]) -> list[str]:
    names = {name for task in campaign.tasks.values() for name in task.names}
    return sorted(names - set(entries))


def _iter_published_rows(
    campaign: PublishableCampaign,
    benchmark: Benchmark,
    entries: Mapping[str, Entry],
    aliases: Mapping[str, str],
    undecided: set[str],
) -> Iterator[Row]:
    """Yield the benchmark row of each clip; add the names of clips without consensus to `undecided`."""
    by_name: dict[str, list[AnnotationTask]] = {}
    for task in campaign.tasks.values():
        for name in task.names:
            by_name.setdefault(name, []).append(task)
    answers = campaign.said_by_task(aliases)
    for name, entry in entries.items():
        result = _find_task_of_entry(entry, by_name[name], benchmark)
        if isinstance(result, Rejected):
            yield result
        elif campaign.campaign.interface.n_clips > 1:
            yield entry
        elif campaign.keep_undecided and result.id not in campaign.consensus.settled:
            undecided.add(name)
            yield build_undecided_entry(entry, answers.get(result.id, {}))
        else:
            yield _build_published_row(entry, result, campaign, answers.get(result.id, {}))


def _find_task_of_entry(
    entry: Entry, tasks: Sequence[AnnotationTask], benchmark: Benchmark
) -> AnnotationTask | Rejected:
    """Return the task that showed the entry's clip, the last one for a URL; reject a changed file."""
    if is_url(entry.location):
        return tasks[-1]
    try:
        current = compute_clip_id(Path(benchmark.find(entry)))
    except (OSError, MediaError):
        return Rejected(entry.name, "its file cannot be read. Put it back")
    for task in tasks:
        if any(copy.clip == current for copy in task.copies):
            return task
    return Rejected(entry.name, "its file is not the one that people judged. Put that one back")


def _build_published_row(
    entry: Entry, task: AnnotationTask, campaign: PublishableCampaign, votes: Mapping[str, AnyValue]
) -> Row:
    outcome = campaign.consensus.tasks.get(task.id)
    if outcome is None:
        return Rejected(entry.name, "not judged yet")
    if not isinstance(outcome, SettledTask):
        return Rejected(entry.name, f"not settled: {outcome.why.value}")
    polished = campaign.polished.get(task.id)
    value = polished.reworded(outcome.value) if polished else outcome.value
    return build_consensus_entry(entry, value, votes, duration_us=task.copies[0].duration_us)
