"""Writer of the HTML page of a campaign, which also copies the disputed clips next to it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from unreel.annotation.campaign import AnnotatorClipCopy, TaskAssignment
from unreel.annotation.campaign_state import By, CampaignRecords
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.page.disputes import (
    TaskDisagreement,
    build_task_player_data,
    format_annotator_answer,
    format_consensus_outcome,
    format_value_and_interval,
    iter_displayed_answers,
    rank_task_disagreements,
)
from unreel.annotation.progress import count_annotator_tasks
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.annotation.studio.projects import (
    LabelStudioProject,
    build_studio_task_url,
    read_stored_projects,
)
from unreel.benchmarks.human_scores import AGAINST, AnnotatorScoreRow
from unreel.core.errors import UnsafeTargetError
from unreel.core.estimate import Measured, describe_interval_coverage
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.protocols.protocol import get_protocol
from unreel.stats.bootstrap import bootstrap_mean


def build_judged_task_urls(
    ledger: Ledger, records: CampaignRecords, *, address: str
) -> dict[By, str]:
    """Return the URL of each judged task in its annotator's project; unknown projects are omitted."""
    rooms = read_stored_projects(ledger, records.campaign.name)
    urls: dict[By, str] = {}
    for by, record in records.standing.items():
        room = _find_assigned_project(records.assignments.get(by), rooms)
        number = _find_task_number(record.raw)
        if room is not None and number is not None:
            urls[by] = build_studio_task_url(address, room.project, number)
    return urls


def _find_assigned_project(
    assignment: TaskAssignment | None, rooms: dict[str, LabelStudioProject]
) -> LabelStudioProject | None:
    return None if assignment is None else rooms.get(f"{assignment.annotator}/{assignment.batch}")


def _find_task_number(raw: str) -> int | None:
    """Return the Label Studio number of the task of a pulled annotation; `None` if it is missing."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    number = document.get("task") if isinstance(document, dict) else None
    return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorProgressRow:
    """Row of one annotator in the table of progress on the campaign page."""

    annotator: str
    n_assigned: int
    n_judged: int
    n_unreadable: int
    """Number of tasks whose newest answer is quarantined."""
    seconds: Measured
    """Mean time per task in seconds."""
    excluded: str
    """Reason why the annotator is excluded; "" if the annotator is not excluded."""

    @property
    def share(self) -> float:
        """Return the fraction of the annotator's assigned tasks that are judged; 0 if none is assigned."""
        return self.n_judged / self.n_assigned if self.n_assigned else 0.0


def iter_annotator_progress_rows(
    records: CampaignRecords, *, seed: int
) -> Iterator[AnnotatorProgressRow]:
    """Yield the row of progress of each annotator with an assigned task, sorted by name."""
    for annotator, counts in count_annotator_tasks(records).items():
        notice = records.excluded.get(annotator)
        yield AnnotatorProgressRow(
            annotator=annotator,
            n_assigned=counts.given,
            n_judged=counts.done,
            n_unreadable=counts.quarantined,
            seconds=bootstrap_mean(counts.spent_s, seed=seed),
            excluded="" if notice is None else notice.said or "excluded",
        )


PAGE: Final = "index.html"
TASKS: Final = "tasks.csv"
MEDIA: Final = "media"
SHOWN: Final = 200
"""Default maximum number of disagreements on the page; the table next to it contains all tasks."""
_UNREADABLE: Final = 100
_COLUMNS: Final = ("clips", "task", "settled", "distance", "outcome", "said")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPageSettings:
    """Settings of the HTML page of a campaign: clips, links, annotator scores and number of tasks."""

    media: Path | None
    """Folder of the browser copies; `None` for a page without clips."""
    links: dict[By, str] = field(default_factory=dict)
    """URLs of tasks on the server, by annotator and task id."""
    people: Sequence[AnnotatorScoreRow] = ()
    """Scores of each annotator and of the majority."""
    most: int = SHOWN
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPageResult:
    """Path of a written campaign page, and counts of its tasks and clips."""

    page: Path
    n_tasks: int
    n_judged: int
    n_settled: int
    n_disputed: int
    """Number of tasks without consensus, or with differing answers."""
    n_shown: int
    n_media: int


def write_campaign_page(
    edition: PublishableCampaign, records: CampaignRecords, out: Path, wish: CampaignPageSettings
) -> CampaignPageResult:
    """Write the HTML page of a campaign, its table of tasks and its clips to `out`; replace old ones."""
    ranked = rank_task_disagreements(edition)
    disputed = [task for task in ranked if task.distance > 0 or not task.is_settled]
    selected = disputed[: wish.most]
    folder = OutputDirectory(out, published=True)
    sources = _copy_disputed_clips(folder, selected, wish.media)
    folder.write(TASKS, build_csv_table(_COLUMNS, map(_build_dispute_row, ranked)).encode())
    text = _render_campaign_page(
        edition, records, wish, selected=selected, n_disputed=len(disputed), sources=sources
    )
    page = folder.write(PAGE, text.encode())
    return CampaignPageResult(
        page=page,
        n_tasks=len(edition.tasks),
        n_judged=len(ranked),
        n_settled=len(edition.consensus.settled),
        n_disputed=len(disputed),
        n_shown=len(selected),
        n_media=len(sources),
    )


def _render_campaign_page(
    edition: PublishableCampaign,
    records: CampaignRecords,
    settings: CampaignPageSettings,
    *,
    selected: Sequence[TaskDisagreement],
    n_disputed: int,
    sources: Mapping[str, str],
) -> str:
    progress = list(iter_annotator_progress_rows(records, seed=settings.seed))
    reasons = Counter(str(getattr(r.outcome, "reason", "")) for r in records.quarantined)
    body = render_template(
        "unreel.annotation.page:campaign.html",
        campaign=edition.campaign,
        tiles=_iter_summary_tiles(edition, records, n_disputed=n_disputed),
        disputes=[_build_dispute_section(i, d, settings.links) for i, d in enumerate(selected)],
        n_disputed=n_disputed,
        tasks_file=TASKS,
        progress=[_build_progress_cells(row) for row in progress],
        promise=describe_interval_coverage([row.seconds for row in progress], kind="seconds"),
        agreement=list(_iter_agreement_rows(edition)),
        people=[_format_annotator_score_row(row) for row in settings.people],
        unreadable=records.quarantined[:_UNREADABLE],
        n_unreadable=len(records.quarantined),
        reasons=reasons.most_common(),
        names={id_: " | ".join(task.names) for id_, task in edition.tasks.items()},
    )
    data: dict[str, Any] = {"disputes": [build_task_player_data(d, sources) for d in selected]}
    return build_html_page(
        title=f"{edition.campaign.name}: campaign",
        body=body,
        styles=(player.STYLE, "unreel.annotation.page:campaign.css"),
        scripts=(player.SCRIPT, "unreel.annotation.page:campaign.js"),
        data=data,
    )


def _iter_agreement_rows(edition: PublishableCampaign) -> Iterator[tuple[str, ...]]:
    """Yield the table rows of agreement: of all annotators, of each with the others, and by category."""
    agreement = edition.agreement
    for name, value in agreement.overall.items():
        yield "everybody", name, *format_value_and_interval(value, places=3)
    for who, metrics in (*agreement.by_annotator.items(), *agreement.by_category.items()):
        for metric, value in metrics.items():
            yield str(who), metric.value, *format_value_and_interval(value, places=3)


def _iter_summary_tiles(
    edition: PublishableCampaign, records: CampaignRecords, *, n_disputed: int
) -> Iterator[tuple[str, str]]:
    yield f"{len(edition.tasks):,}", "tasks"
    yield f"{len(records.standing):,} of {len(records.assignments):,}", "judgements received"
    yield f"{len(edition.consensus.settled):,}", "settled"
    yield f"{n_disputed:,}", "with disagreement"
    yield f"{len(records.quarantined):,}", "unreadable"


def _build_dispute_section(
    index: int, dispute: TaskDisagreement, links: dict[By, str]
) -> dict[str, Any]:
    return {
        "id": f"task-{index}",
        "name": dispute.name,
        "is_settled": dispute.is_settled,
        "percent": f"{100 * dispute.distance:.0f}",
        "outcome": format_consensus_outcome(dispute),
        "words": list(iter_displayed_answers(dispute, links)),
        "known": "" if dispute.task.known is None else format_annotator_answer(dispute.task.known),
    }


def _build_progress_cells(row: AnnotatorProgressRow) -> dict[str, Any]:
    seconds, doubt = format_value_and_interval(row.seconds, places=1)
    return {"of": row, "percent": f"{100 * row.share:.0f}", "seconds": seconds, "doubt": doubt}


def _format_annotator_score_row(row: AnnotatorScoreRow) -> tuple[str, ...]:
    figures = get_protocol(row.protocol).figures
    figure = figures[figures.ranks_by(judged=False)]
    value = format_value_and_interval(row[figure.metric], places=figure.places)
    return row.name, row.protocol, figure.title, *value, AGAINST[row.against]


def _build_dispute_row(dispute: TaskDisagreement) -> dict[str, object]:
    answers = "; ".join(f"{o.annotator}: {format_annotator_answer(o.value)}" for o in dispute.said)
    return {
        "clips": dispute.name,
        "task": dispute.task.id,
        "settled": "yes" if dispute.is_settled else "no",
        "distance": f"{dispute.distance:.4f}",
        "outcome": format_consensus_outcome(dispute),
        "said": answers,
    }


def _copy_disputed_clips(
    folder: OutputDirectory, tasks: Sequence[TaskDisagreement], media: Path | None
) -> dict[str, str]:
    """Copy the clips of disputed tasks into the page's folder; return URLs by clip, without failed copies."""
    if media is None:
        return {}
    urls: dict[str, str] = {}
    for copy in (copy for task in tasks for copy in task.task.copies):
        name = f"{MEDIA}/{copy.clip}.mp4"
        if copy.clip not in urls and _copy_media_file(folder, media, copy, name):
            urls[copy.clip] = name
    return urls


def _copy_media_file(
    folder: OutputDirectory, media: Path, copy: AnnotatorClipCopy, name: str
) -> bool:
    if folder.size(name) is not None:
        return True
    try:
        with OutputDirectory(media).read(copy.location) as source, folder.create(name) as file:
            while block := source.read(1 << 20):
                file.write(block)
    except (OSError, UnsafeTargetError):
        return False
    return True
