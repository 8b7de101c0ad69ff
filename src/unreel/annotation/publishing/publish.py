"""Publication of a campaign: a benchmark folder with its clips and the consensus as ground truth."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask
from unreel.annotation.consensus.outcome import SettledTask
from unreel.annotation.judgements import AnyValue
from unreel.annotation.publishing.consensus_entries import (
    build_consensus_entry,
    build_undecided_entry,
)
from unreel.annotation.publishing.dataset_card import (
    CARD,
    CampaignCardContent,
    format_campaign_card,
)
from unreel.annotation.publishing.human_scores import score_annotators
from unreel.annotation.publishing.publishable_campaign import (
    PublishableCampaign,
    assign_annotator_aliases,
    build_annotator_scoring_input,
    write_consensus_and_answers,
)
from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.human_scores import AnnotatorScoreRow, HumanScores, write_human_scores
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.statistics import compute_benchmark_identity
from unreel.benchmarks.video_folder import write_video_folder
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import MediaError, UnreadableSourceError
from unreel.core.output_files import PART, OutputDirectory
from unreel.protocols.realism import REALISM
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE

Media = Literal["copy", "link"]
UNDECIDED: Final = "undecided"
"""Column of `metadata.jsonl`: whether the clip has no consensus and keeps its original truth."""
_DRAFT: Final = f"{PART}publishing"
_PROTOCOLS: Final = {
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
    edition: PublishableCampaign,
    out: Path,
    *,
    media: Media = "copy",
    named: bool = False,
    seed: int = 0,
) -> PublicationResult:
    """Write a campaign as a benchmark to the new folder `out`, atomically.

    Args:
        edition: Content to publish.
        out: A missing or empty folder.
        media: `copy`, or `link` for hard links if the file system supports them.
        named: Whether to publish the annotators' own names instead of random numbers.
        seed: Seed of the random numbers, and of every interval.

    Raises:
        UnreadableSourceError: `out` is not empty, or no clip can be published.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    above = OutputDirectory(out.parent, published=True)
    draft = f"{_DRAFT}-{out.name}"
    above.remove_folder(draft)
    published = _write_publication(edition, out.parent / draft, media=media, named=named, seed=seed)
    if out.exists():
        above.remove_folder(out.name)
    above.rename(draft, out.name)
    return replace(published, folder=out)


def _write_publication(
    edition: PublishableCampaign, into: Path, *, media: Media, named: bool, seed: int
) -> PublicationResult:
    benchmark = open_benchmark(Path(edition.campaign.benchmark))
    aliases = assign_annotator_aliases(edition.annotators, seed=seed, named=named)
    entries = {entry.name: entry for entry in _iter_campaign_entries(benchmark, edition.tasks)}
    undecided = set[str]()
    rows = _iter_published_rows(edition, benchmark, entries, aliases, undecided)

    def more(entry: Entry) -> dict[str, object]:
        return {UNDECIDED: entry.name in undecided} if edition.keep_undecided else {}

    written = write_video_folder(rows, into, root=benchmark.root, media=media, more=more)
    gone = (
        Rejected(name, "not in the benchmark any more")
        for name in _list_missing_clips(edition, entries)
    )
    rejected = (*written.refused, *gone)
    if not written.n_entries:
        first = f": {rejected[0]}" if rejected else ""
        remedy = "Pull more judgements, or lower --quorum"
        raise UnreadableSourceError(edition.campaign.name, f"no clip is settled{first}", remedy)
    people = _score_aliased_annotators(edition, entries, aliases, seed=seed)
    folder = OutputDirectory(into, published=True)
    write_consensus_and_answers(folder, edition, aliases)
    known = compute_benchmark_identity(open_benchmark(into))
    fingerprint = known.fingerprint if known else ""
    write_human_scores(
        folder, HumanScores(campaign=edition.campaign.name, fingerprint=fingerprint, rows=people)
    )
    n_undecided = len(undecided - {left.name for left in rejected})
    card = CampaignCardContent(
        edition=edition,
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
        protocol=_PROTOCOLS.get(edition.campaign.interface, REALITY.instrument).protocol,
        n_undecided=n_undecided,
        left_out=rejected,
        people=people,
    )


def _iter_campaign_entries(
    benchmark: Benchmark, tasks: Mapping[str, AnnotationTask]
) -> Iterator[Entry]:
    names = {name for task in tasks.values() for name in task.names}
    return (row for row in benchmark if isinstance(row, Entry) and row.name in names)


def _list_missing_clips(edition: PublishableCampaign, entries: Mapping[str, Entry]) -> list[str]:
    names = {name for task in edition.tasks.values() for name in task.names}
    return sorted(names - set(entries))


def _iter_published_rows(
    edition: PublishableCampaign,
    benchmark: Benchmark,
    entries: Mapping[str, Entry],
    aliases: Mapping[str, str],
    undecided: set[str],
) -> Iterator[Row]:
    """Yield the benchmark row of each clip; add the names of clips without consensus to `undecided`."""
    by_name: dict[str, list[AnnotationTask]] = {}
    for task in edition.tasks.values():
        for name in task.names:
            by_name.setdefault(name, []).append(task)
    answers = edition.said_by_task(aliases)
    for name, entry in entries.items():
        result = _find_task_of_entry(entry, by_name[name], benchmark)
        if isinstance(result, Rejected):
            yield result
        elif edition.campaign.interface.n_clips > 1:
            yield entry
        elif edition.keep_undecided and result.id not in edition.consensus.settled:
            undecided.add(name)
            yield build_undecided_entry(entry, answers.get(result.id, {}))
        else:
            yield _build_published_row(entry, result, edition, answers.get(result.id, {}))


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
    entry: Entry, task: AnnotationTask, edition: PublishableCampaign, votes: Mapping[str, AnyValue]
) -> Row:
    outcome = edition.consensus.tasks.get(task.id)
    if outcome is None:
        return Rejected(entry.name, "not judged yet")
    if not isinstance(outcome, SettledTask):
        return Rejected(entry.name, f"not settled: {outcome.why.value}")
    polished = edition.polished.get(task.id)
    value = polished.reworded(outcome.value) if polished else outcome.value
    return build_consensus_entry(entry, value, votes, duration_us=task.copies[0].duration_us)


def _score_aliased_annotators(
    edition: PublishableCampaign,
    entries: Mapping[str, Entry],
    aliases: Mapping[str, str],
    *,
    seed: int,
) -> tuple[AnnotatorScoreRow, ...]:
    return tuple(
        replace(row, name=aliases[row.name]) if row.kind == "annotator" else row
        for row in score_annotators(build_annotator_scoring_input(edition, entries, seed=seed))
    )
