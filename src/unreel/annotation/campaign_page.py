"""Writer of the HTML page of a campaign: disputed tasks first, with copies of their clips next to it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from unreel.annotation.campaign import (
    AnnotationTask,
    AnnotatorClipCopy,
    PrefillStudyArm,
    TaskAssignment,
)
from unreel.annotation.campaign_state import (
    AnnotatorJudgement,
    By,
    CampaignRecords,
    count_annotator_tasks,
)
from unreel.annotation.consensus.outcome import (
    AnnotatorOpinion,
    Outcome,
    SettledTask,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.consensus.trace_consensus import measure_trace_similarity
from unreel.annotation.judgements import AnyValue, RatingAnswer, TraceAnswer
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.annotation.studio.projects import (
    LabelStudioProject,
    build_studio_task_url,
    read_stored_projects,
)
from unreel.benchmarks.human_scores import AGAINST, AnnotatorScoreRow
from unreel.core.errors import UnsafeTargetError
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.output_files import OutputDirectory
from unreel.core.span import MICROSECONDS
from unreel.core.table_formats import build_csv_table
from unreel.core.trace import Trace
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.player import PlayerBoxSpec, PlayerSpec, PlayerTraceSpec, PlayerTrackSpec
from unreel.protocols.protocol import get_protocol
from unreel.stats.bootstrap import bootstrap_mean

_SCALE = 4
"""Difference between the highest and the lowest score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDisagreement:
    """Task with all its opinions, its consensus outcome and the amount of disagreement."""

    task: AnnotationTask
    said: tuple[AnnotatorOpinion, ...]
    """Opinions on the task, sorted by annotator."""
    outcome: Outcome
    distance: float
    """Amount of disagreement, from 0 to 1."""

    @property
    def is_settled(self) -> bool:
        """Return whether the annotators of the task reached a consensus."""
        return isinstance(self.outcome, SettledTask)

    @property
    def name(self) -> str:
        return " | ".join(self.task.names)


def rank_task_disagreements(campaign: PublishableCampaign) -> list[TaskDisagreement]:
    """Return all judged tasks: tasks without consensus first, then by decreasing disagreement."""
    tasks = [
        TaskDisagreement(
            task=opinions[0].task,
            said=tuple(opinions),
            outcome=campaign.consensus.tasks[id_],
            distance=measure_disagreement([o.value for o in opinions], opinions[0].task.copies[0]),
        )
        for id_, opinions in group_opinions_by_task(campaign.opinions).items()
    ]
    return sorted(tasks, key=lambda task: (task.is_settled, -task.distance, task.task.names))


def measure_disagreement(values: Sequence[AnyValue], copy: AnnotatorClipCopy) -> float:
    """Compute the disagreement of the answers to one task: 0 if all agree, at most 1.

    For votes and choices it is the fraction of people who do not give the most common answer. For
    scores it is their range. For traces it is the larger of that fraction and the mean missing
    overlap.
    """
    apart = _compute_answer_disagreement(values)
    scores = [
        v.rating.score for v in values if isinstance(v, RatingAnswer) and v.rating is not None
    ]
    if len(scores) == len(values) > 0:
        return (max(scores) - min(scores)) / _SCALE
    marked = [v for v in values if isinstance(v, TraceAnswer)]
    pairs = [1 - _compute_trace_agreement(a, b, copy) for a, b in combinations(marked, 2)]
    return max([apart, fmean(pairs)]) if pairs else apart


def _compute_answer_disagreement(values: Sequence[AnyValue]) -> float:
    tally = Counter(map(get_categorical_answer, values))
    return 1 - tally.most_common(1)[0][1] / len(values) if values else 0.0


def _compute_trace_agreement(a: TraceAnswer, b: TraceAnswer, copy: AnnotatorClipCopy) -> float:
    """Compute the mean best-match similarity of each trace of two annotators; 1 without traces."""
    best = [
        max((measure_trace_similarity(mine, theirs, copy) for theirs in right.traces), default=0.0)
        for left, right in ((a, b), (b, a))
        for mine in left.traces
    ]
    return fmean(best) if best else 1.0


COLOURS = 6
"""Number of colours of the player; further annotators reuse them."""
_MOST_INSTANTS = 1800
"""Maximum number of frame times per clip on a page of many clips; the player steps longer clips by time."""


def build_task_player_data(
    disagreement: TaskDisagreement, sources: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the video player's data for each clip of the task; clips not in `sources` are skipped."""
    return [
        asdict(_build_player_spec(disagreement, copy, name, sources[copy.clip]))
        for copy, name in zip(disagreement.task.copies, disagreement.task.names, strict=True)
        if copy.clip in sources
    ]


def _build_player_spec(
    disagreement: TaskDisagreement, copy: AnnotatorClipCopy, name: str, source: str
) -> PlayerSpec:
    tracks = tuple(_iter_track_specs(disagreement)) if len(disagreement.task.copies) == 1 else ()
    starts = [trace.start_us for track in tracks for trace in track.traces]
    frames = range(copy.n_frames) if copy.n_frames <= _MOST_INSTANTS else ()
    return PlayerSpec(
        src=source,
        width=copy.width,
        height=copy.height,
        duration_us=copy.duration_us,
        first_us=0,
        instants=tuple(copy.at_us(frame) for frame in frames),
        shown_us=(),
        tracks=tracks,
        title=name,
        opens_us=min((start for start in starts if start is not None), default=None),
    )


def _iter_track_specs(disagreement: TaskDisagreement) -> Iterator[PlayerTrackSpec]:
    """Yield the player's timeline tracks: known answer, consensus, then each annotator's answer."""
    if disagreement.task.known is not None:
        yield _build_track_spec("known answer", disagreement.task.known, kind="truth")
    if isinstance(disagreement.outcome, SettledTask):
        yield _build_track_spec("settled", disagreement.outcome.value, kind="truth")
    for opinion in disagreement.said:
        yield _build_track_spec(opinion.annotator, opinion.value, kind="answer")


def _build_track_spec(name: str, value: AnyValue, *, kind: str) -> PlayerTrackSpec:
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    return PlayerTrackSpec(
        name=name,
        kind="truth" if kind == "truth" else "answer",
        traces=tuple(map(_build_trace_spec, traces)),
        note=get_categorical_answer(value).replace("-", " "),
    )


def _build_trace_spec(trace: Trace) -> PlayerTraceSpec:
    kinds = ", ".join(sorted(category.value for category in trace.categories))
    return PlayerTraceSpec(
        start_us=trace.span.start_us,
        end_us=trace.span.end_us,
        boxes=tuple(map(PlayerBoxSpec.of, trace.track)),
        label=kinds or "fault",
        text=trace.explanation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedAnswer:
    """One annotator's answer to a task, formatted for the page."""

    annotator: str
    colour: str
    """CSS class of the annotator's colour in the player."""
    answer: str
    texts: tuple[str, ...]
    seconds: str
    """Time spent on the task, as text; "" if unknown."""
    arm: str
    """Study arm: whether the annotator saw earlier annotations; "" outside a study."""
    link: str
    """URL of the task; "" if there is none."""


def iter_displayed_answers(
    disagreement: TaskDisagreement, links: dict[By, str]
) -> Iterator[DisplayedAnswer]:
    """Yield all answers to a task for the page, in the order and colours of the player's timeline."""
    for i, opinion in enumerate(disagreement.said):
        lead_us = opinion.lead_us if isinstance(opinion, AnnotatorJudgement) else None
        arm = opinion.arm if isinstance(opinion, AnnotatorJudgement) else PrefillStudyArm.PLAIN
        yield DisplayedAnswer(
            annotator=opinion.annotator,
            colour=f"c{i % COLOURS}",
            answer=format_annotator_answer(opinion.value),
            texts=tuple(_iter_answer_texts(opinion.value)),
            seconds="" if lead_us is None else f"{lead_us / MICROSECONDS:.0f} s",
            arm="" if arm is PrefillStudyArm.PLAIN else arm.value,
            link=links.get((opinion.annotator, disagreement.task.id), ""),
        )


def format_annotator_answer(value: AnyValue) -> str:
    """Return an annotator's answer as a few words."""
    answer = get_categorical_answer(value).replace("-", " ")
    if isinstance(value, TraceAnswer) and value.traces:
        n = len(value.traces)
        return f"{answer}, {n} fault{'s' if n > 1 else ''}"
    return answer


def format_consensus_outcome(disagreement: TaskDisagreement) -> str:
    """Return the consensus of a task as text, or the reason why there is none."""
    if isinstance(disagreement.outcome, SettledTask):
        way = disagreement.outcome.method.value.replace("-", " ")
        return f"settled by {way}: {format_annotator_answer(disagreement.outcome.value)}"
    return f"not settled, {disagreement.outcome.why.value.replace('-', ' ')}: {disagreement.outcome.detail}"


def format_value_and_interval(value: Measured, *, places: int) -> tuple[str, str]:
    """Return the value and its interval with n as texts; "" and the reason if it is not measured."""
    if isinstance(value, Estimate):
        ends = f"{value.low:.{places}f} to {value.high:.{places}f}"
        return f"{value.value:.{places}f}", f"{ends}, n {value.n:,}"
    return "", f"not measured: {value.why}"


def _iter_answer_texts(value: AnyValue) -> Iterator[str]:
    match value:
        case TraceAnswer():
            yield from (trace.explanation for trace in value.traces if trace.explanation)
        case RatingAnswer(rating=rating) if rating is not None:
            yield from (text for text in (rating.problem, rating.adherence) if text)
        case _:
            return


def build_judged_task_urls(
    ledger: Ledger, records: CampaignRecords, *, address: str
) -> dict[By, str]:
    """Return the URL of each judged task in its annotator's project; unknown projects are omitted."""
    projects = read_stored_projects(ledger, records.campaign.name)
    urls: dict[By, str] = {}
    for by, record in records.standing.items():
        project = _find_assigned_project(records.assignments.get(by), projects)
        number = _find_task_number(record.raw)
        if project is not None and number is not None:
            urls[by] = build_studio_task_url(address, project.project, number)
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


PAGE = "index.html"
TASKS = "tasks.csv"
MEDIA = "media"
SHOWN = 200
"""Default maximum number of disagreements on the page; the table next to it contains all tasks."""
_UNREADABLE = 100
_COLUMNS = ("clips", "task", "settled", "distance", "outcome", "said")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPageSettings:
    """Settings of the HTML page of a campaign: clips, links, annotator scores and number of tasks."""

    media: Path | None
    """Folder of the browser copies; `None` for a page without clips."""
    links: dict[By, str] = field(default_factory=dict)
    """URLs of tasks on the server, by annotator and task id."""
    people: Sequence[AnnotatorScoreRow] = ()
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
    campaign: PublishableCampaign,
    records: CampaignRecords,
    out: Path,
    settings: CampaignPageSettings,
) -> CampaignPageResult:
    """Write the HTML page of a campaign, its table of tasks and its clips to `out`; replace old ones."""
    ranked = rank_task_disagreements(campaign)
    disputed = [task for task in ranked if task.distance > 0 or not task.is_settled]
    selected = disputed[: settings.most]
    folder = OutputDirectory(out, published=True)
    sources = _copy_disputed_clips(folder, selected, settings.media)
    folder.write(TASKS, build_csv_table(_COLUMNS, map(_build_dispute_row, ranked)).encode())
    text = _render_campaign_page(
        campaign,
        records,
        settings,
        selected_disagreement=selected,
        n_disputed=len(disputed),
        sources=sources,
    )
    page = folder.write(PAGE, text.encode())
    return CampaignPageResult(
        page=page,
        n_tasks=len(campaign.tasks),
        n_judged=len(ranked),
        n_settled=len(campaign.consensus.settled),
        n_disputed=len(disputed),
        n_shown=len(selected),
        n_media=len(sources),
    )


def _render_campaign_page(
    campaign: PublishableCampaign,
    records: CampaignRecords,
    settings: CampaignPageSettings,
    *,
    selected_disagreement: Sequence[TaskDisagreement],
    n_disputed: int,
    sources: Mapping[str, str],
) -> str:
    progress = list(iter_annotator_progress_rows(records, seed=settings.seed))
    reasons = Counter(str(getattr(r.outcome, "reason", "")) for r in records.quarantined)
    body = render_template(
        "unreel.annotation:campaign.html",
        campaign=campaign.campaign,
        tiles=_iter_summary_tiles(campaign, records, n_disputed=n_disputed),
        disputes=[
            {
                "id": f"task-{i}",
                "name": d.name,
                "is_settled": d.is_settled,
                "percent": f"{100 * d.distance:.0f}",
                "outcome": format_consensus_outcome(d),
                "words": list(iter_displayed_answers(d, settings.links)),
                "known": "" if d.task.known is None else format_annotator_answer(d.task.known),
            }
            for i, d in enumerate(selected_disagreement)
        ],
        n_disputed=n_disputed,
        tasks_file=TASKS,
        progress=[_build_progress_cells(row) for row in progress],
        promise=describe_interval_coverage([row.seconds for row in progress], kind="seconds"),
        agreement=list(_iter_agreement_rows(campaign)),
        people=[_format_annotator_score_row(row) for row in settings.people],
        unreadable=records.quarantined[:_UNREADABLE],
        n_unreadable=len(records.quarantined),
        reasons=reasons.most_common(),
        names={id_: " | ".join(task.names) for id_, task in campaign.tasks.items()},
    )
    data: dict[str, Any] = {
        "disputes": [build_task_player_data(d, sources) for d in selected_disagreement]
    }
    return build_html_page(
        title=f"{campaign.campaign.name}: campaign",
        body=body,
        styles=(player.STYLE, "unreel.annotation:campaign.css"),
        scripts=(player.SCRIPT, "unreel.annotation:campaign.js"),
        data=data,
    )


def _iter_agreement_rows(campaign: PublishableCampaign) -> Iterator[tuple[str, ...]]:
    """Yield the table rows of agreement: of all annotators, of each with the others, and by category."""
    agreement = campaign.agreement
    for name, value in agreement.overall.items():
        yield "everybody", name, *format_value_and_interval(value, places=3)
    for who, metrics in (*agreement.by_annotator.items(), *agreement.by_category.items()):
        for metric, value in metrics.items():
            yield str(who), metric.value, *format_value_and_interval(value, places=3)


def _iter_summary_tiles(
    campaign: PublishableCampaign, records: CampaignRecords, *, n_disputed: int
) -> Iterator[tuple[str, str]]:
    yield f"{len(campaign.tasks):,}", "tasks"
    yield f"{len(records.standing):,} of {len(records.assignments):,}", "judgements received"
    yield f"{len(campaign.consensus.settled):,}", "settled"
    yield f"{n_disputed:,}", "with disagreement"
    yield f"{len(records.quarantined):,}", "unreadable"


def _build_progress_cells(row: AnnotatorProgressRow) -> dict[str, Any]:
    seconds, doubt = format_value_and_interval(row.seconds, places=1)
    return {"of": row, "percent": f"{100 * row.share:.0f}", "seconds": seconds, "doubt": doubt}


def _format_annotator_score_row(row: AnnotatorScoreRow) -> tuple[str, ...]:
    figures = get_protocol(row.protocol).figures
    metric = figures[figures.ranks_by(judged=False)]
    value = format_value_and_interval(row[metric.metric], places=metric.places)
    return row.name, row.protocol, metric.title, *value, AGAINST[row.against]


def _build_dispute_row(disagreement: TaskDisagreement) -> dict[str, object]:
    answers = "; ".join(
        f"{o.annotator}: {format_annotator_answer(o.value)}" for o in disagreement.said
    )
    return {
        "clips": disagreement.name,
        "task": disagreement.task.id,
        "settled": "yes" if disagreement.is_settled else "no",
        "distance": f"{disagreement.distance:.4f}",
        "outcome": format_consensus_outcome(disagreement),
        "said": answers,
    }


def _copy_disputed_clips(
    directory: OutputDirectory, tasks: Sequence[TaskDisagreement], media: Path | None
) -> dict[str, str]:
    """Copy the clips of disputed tasks into the page's folder; return URLs by clip, without failed copies."""
    if media is None:
        return {}
    urls: dict[str, str] = {}
    for copy in (copy for task in tasks for copy in task.task.copies):
        name = f"{MEDIA}/{copy.clip}.mp4"
        if copy.clip not in urls and _copy_media_file(directory, media, copy, name):
            urls[copy.clip] = name
    return urls


def _copy_media_file(
    directory: OutputDirectory, media: Path, copy: AnnotatorClipCopy, name: str
) -> bool:
    if directory.size(name) is not None:
        return True
    try:
        with OutputDirectory(media).read(copy.location) as source, directory.create(name) as file:
            while block := source.read(1 << 20):
                file.write(block)
    except (OSError, UnsafeTargetError):
        return False
    return True
