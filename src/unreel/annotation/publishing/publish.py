"""Publication of a campaign: a benchmark folder with its clips and the consensus as ground truth."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask
from unreel.annotation.consensus.outcome import SettledTask
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
from unreel.annotation.quality import CampaignAgreement
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
from unreel.protocols.locate import LOCATE
from unreel.protocols.protocol import get_protocol
from unreel.protocols.realism import REALISM
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE

CARD = "README.md"
_LISTED = 200
"""Maximum number of excluded clips that are listed by name; `consensus.jsonl` has all tasks."""


def format_campaign_card(
    published: PublishableCampaign, result: "PublicationResult", *, n_marked_real: int
) -> str:
    """Format the card as Markdown with a dataset hub's header, without paths, machine names or addresses.

    `n_marked_real` is the number of real clips with a consensus on faults.
    """
    campaign, consensus = published.campaign, published.consensus
    rule = consensus.rule
    header = [
        "---",
        f"pretty_name: {json.dumps(campaign.name)}",
        "license: other",
        "task_categories: [video-classification]",
        "tags: [video, ai-generated, human-annotated, unreel]",
        "---",
    ]
    facts: list[tuple[str, object]] = [
        ("tasks", f"{len(published.tasks):,}"),
        ("judged", f"{len(consensus.tasks):,}"),
        ("settled", f"{len(consensus.settled):,}"),
        ("not settled", f"{len(consensus.unsettled):,}"),
    ]
    if published.keep_undecided:
        what = "kept without a decision, `undecided` in `metadata.jsonl`"
        facts.append((what, f"{result.n_undecided:,}"))
    facts += [
        ("judgements", f"{len(published.opinions):,} by {len(published.annotators)} people"),
        ("annotators per task", f"{campaign.overlap}"),
        ("consensus", f"{rule.method.value}, quorum {rule.quorum}, min-overlap {rule.min_overlap}"),
        ("with dissent", f"{sum(bool(s.dissent) for s in consensus.settled.values()):,}"),
    ]
    if published.polished:
        merged = f"{len(published.polished):,} merged by a language model and confirmed by people"
        facts.append(("rationales", merged))
    versions = f"{campaign.guidelines_version}, {campaign.interface_version}"
    facts += [
        ("annotations that could not be read", f"{published.n_quarantined:,}"),
        ("people who were excluded", f"{published.n_excluded:,}"),
        ("real clips with a consensus on faults", f"{n_marked_real:,}"),
        ("guidelines, interface", versions),
    ]
    files = (
        ("metadata.jsonl", "one row for each clip, with its truth and the judgements behind it"),
        ("media/", "the clips, unchanged"),
        (CONSENSUS, "each task: the consensus, who agreed and who disagreed, or why there is none"),
        (ANNOTATIONS, "each judgement, unchanged"),
        (PEOPLE, "each annotator and the majority, with the metrics of the protocols"),
    )
    # Quoted, so that the text of the guidelines cannot change the structure of the card.
    guidelines = "\n".join(f"> {line}".rstrip() for line in campaign.guidelines.splitlines())
    parts = [
        "\n".join(header),
        f"# {campaign.name}",
        f"{result.n_clips:,} clips with the consensus of annotators for `{campaign.interface.value}`.",
        "## How it was made",
        build_markdown_table(("property", "value"), facts),
        "## Agreement",
        _format_agreement_section(published.agreement),
        "## Quality of the annotators",
        _format_annotator_scores_section(result.people),
        "## Left out",
        _format_excluded_clips_section(result.left_out),
        "## Files",
        build_markdown_table(("file", "content"), files),
        "## Guidelines",
        guidelines or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _format_agreement_section(agreement: CampaignAgreement) -> str:
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
    AnnotationInterface.LOCATE: LOCATE.instrument,
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

    `out` is a missing or empty folder. `media` is `copy`, or `link` for hard links if the file
    system supports them. With `named`, annotators' own names are published instead of random
    numbers.
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
    names = {name for task in campaign.tasks.values() for name in task.names}
    entries = {row.name: row for row in benchmark if isinstance(row, Entry) and row.name in names}
    undecided = set[str]()
    rows = _iter_published_rows(campaign, benchmark, entries, aliases, undecided)

    def more(entry: Entry) -> dict[str, object]:
        return {UNDECIDED: entry.name in undecided} if campaign.keep_undecided else {}

    n_written, refused = write_video_folder(rows, into, root=benchmark.root, media=media, more=more)
    gone = (Rejected(n, "not in the benchmark any more") for n in sorted(names - set(entries)))
    rejected = (*refused, *gone)
    if not n_written:
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
    consensus_by_task = campaign.consensus.settled
    n_marked_real = sum(
        has_traces_on_real_clip(entries[task.names[0]], consensus_by_task[id_].value)
        for id_, task in campaign.tasks.items()
        if id_ in consensus_by_task and task.names[0] in entries
    )
    result = PublicationResult(
        folder=into,
        n_clips=n_written,
        protocol=_PROTOCOLS.get(campaign.campaign.interface, REALITY.instrument).protocol,
        n_undecided=len(undecided - {left.name for left in rejected}),
        left_out=rejected,
        people=people,
    )
    card = format_campaign_card(campaign, result, n_marked_real=n_marked_real)
    folder.write(CARD, card.encode())
    return result


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
    answers = campaign.answers_by_task(aliases)
    for name, entry in entries.items():
        result = _find_task_of_entry(entry, by_name[name], benchmark)
        if isinstance(result, Rejected):
            yield result
        elif campaign.campaign.interface.n_clips > 1:
            yield entry
        elif campaign.keep_undecided and result.id not in campaign.consensus.settled:
            undecided.add(name)
            yield build_undecided_entry(entry, answers.get(result.id, {}))
        elif (outcome := campaign.consensus.tasks.get(result.id)) is None:
            yield Rejected(name, "not judged yet")
        elif not isinstance(outcome, SettledTask):
            yield Rejected(name, f"not settled: {outcome.why.value}")
        else:
            polished = campaign.polished.get(result.id)
            value = polished.reworded(outcome.value) if polished else outcome.value
            votes, duration_us = answers.get(result.id, {}), result.copies[0].duration_us
            yield build_consensus_entry(entry, value, votes, duration_us=duration_us)


def _find_task_of_entry(
    entry: Entry, tasks: Sequence[AnnotationTask], benchmark: Benchmark
) -> AnnotationTask | Rejected:
    """Return the task that showed the entry's clip, the last one for a URL; reject a changed file."""
    if is_url(entry.location):
        return tasks[-1]
    try:
        current = compute_clip_id(Path(benchmark.find(entry)))
    except (OSError, MediaError):
        return Rejected(entry.name, "the file cannot be read. Put it back")
    for task in tasks:
        if any(copy.clip == current for copy in task.copies):
            return task
    return Rejected(entry.name, "the file is not the one that people judged. Put that one back")
