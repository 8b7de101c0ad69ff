"""Writer of the HTML page of a campaign: disputed tasks first, with copies of their clips next to it."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from unreel.annotation.campaign import (
    AnnotationTask,
    AnnotatorClipCopy,
    AnnotatorJudgement,
    AnyValue,
    PrefillStudyArm,
    RatingAnswer,
    TraceAnswer,
)
from unreel.annotation.campaign_state import By, CampaignRecords, count_annotator_tasks
from unreel.annotation.consensus.consensus import measure_trace_similarity
from unreel.annotation.consensus.outcome import (
    AnnotatorOpinion,
    Outcome,
    SettledTask,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.annotation.studio.projects import build_studio_task_url, read_stored_projects
from unreel.benchmarks.human_scores import AGAINST, AnnotatorScoreRow
from unreel.core.errors import UnsafeTargetError
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.output_files import OutputDirectory
from unreel.core.span import MICROSECONDS
from unreel.core.table_formats import build_csv_table
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
    opinions: tuple[AnnotatorOpinion, ...]
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
            opinions=tuple(opinions),
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
    if not values:
        return 0.0
    tally = Counter(map(get_categorical_answer, values))
    disagreement = 1 - tally.most_common(1)[0][1] / len(values)
    scores = [
        v.rating.score for v in values if isinstance(v, RatingAnswer) and v.rating is not None
    ]
    if len(scores) == len(values):
        return (max(scores) - min(scores)) / _SCALE
    pairs = []
    for a, b in combinations([v for v in values if isinstance(v, TraceAnswer)], 2):
        best = [
            max(
                (measure_trace_similarity(one, other, copy) for other in others.traces), default=0.0
            )
            for own, others in ((a, b), (b, a))
            for one in own.traces
        ]
        pairs.append(1 - (fmean(best) if best else 1.0))
    return max([disagreement, fmean(pairs)]) if pairs else disagreement


COLOURS = 6
"""Number of colours of the player; further annotators reuse them."""
_MAX_INSTANTS = 1800
"""Maximum number of frame times per clip on a page of many clips; the player steps longer clips by time."""


def build_task_player_data(
    disagreement: TaskDisagreement, sources: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the video player's data for each clip of the task; clips not in `sources` are skipped.

    The tracks of the timeline are the known answer, the consensus, then each annotator's answer.
    """
    task, tracks = disagreement.task, []
    answers: list[tuple[str, AnyValue, Literal["truth", "answer"]]] = []
    if task.known is not None:
        answers.append(("known answer", task.known, "truth"))
    if isinstance(disagreement.outcome, SettledTask):
        answers.append(("settled", disagreement.outcome.value, "truth"))
    answers += [(opinion.annotator, opinion.value, "answer") for opinion in disagreement.opinions]
    for name, value, kind in answers if len(task.copies) == 1 else ():
        traces = [
            PlayerTraceSpec(
                start_us=trace.span.start_us,
                end_us=trace.span.end_us,
                boxes=tuple(map(PlayerBoxSpec.of, trace.track)),
                label=", ".join(sorted(c.value for c in trace.categories)) or "fault",
                text=trace.explanation,
            )
            for trace in (value.traces if isinstance(value, TraceAnswer) else ())
        ]
        note = get_categorical_answer(value).replace("-", " ")
        tracks.append(PlayerTrackSpec(name=name, kind=kind, traces=tuple(traces), note=note))
    starts = [trace.start_us for track in tracks for trace in track.traces]
    players = []
    for copy, name in zip(task.copies, task.names, strict=True):
        if copy.clip in sources:
            frames = range(copy.n_frames) if copy.n_frames <= _MAX_INSTANTS else ()
            player_spec = PlayerSpec(
                src=sources[copy.clip],
                width=copy.width,
                height=copy.height,
                duration_us=copy.duration_us,
                first_us=0,
                instants=tuple(copy.at_us(frame) for frame in frames),
                shown_us=(),
                tracks=tuple(tracks),
                title=name,
                opens_us=min((start for start in starts if start is not None), default=None),
            )
            players.append(asdict(player_spec))
    return players


def build_displayed_answers(
    disagreement: TaskDisagreement, links: dict[By, str]
) -> list[dict[str, Any]]:
    """Return all answers to a task for the page, in the order and colours of the player's timeline."""
    answers = []
    for i, opinion in enumerate(disagreement.opinions):
        value, texts, seconds, arm = opinion.value, [], "", ""
        if isinstance(value, TraceAnswer):
            texts = [trace.explanation for trace in value.traces if trace.explanation]
        elif isinstance(value, RatingAnswer) and value.rating is not None:
            texts = [text for text in (value.rating.problem, value.rating.adherence) if text]
        if isinstance(opinion, AnnotatorJudgement):
            arm = "" if opinion.arm is PrefillStudyArm.PLAIN else opinion.arm.value
            if opinion.lead_us is not None:
                seconds = f"{opinion.lead_us / MICROSECONDS:.0f} s"
        answers.append(
            {
                "annotator": opinion.annotator,
                "colour": f"c{i % COLOURS}",
                "answer": format_annotator_answer(value),
                "texts": texts,
                "seconds": seconds,
                "arm": arm,
                "link": links.get((opinion.annotator, disagreement.task.id), ""),
            }
        )
    return answers


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


def build_judged_task_urls(
    ledger: Ledger, records: CampaignRecords, *, address: str
) -> dict[By, str]:
    """Return the URL of each judged task in its annotator's project; unknown projects are omitted."""
    projects = read_stored_projects(ledger, records.campaign.name)
    urls: dict[By, str] = {}
    for by, record in records.current.items():
        assignment = records.assignments.get(by)
        if assignment is None:
            continue
        project = projects.get(f"{assignment.annotator}/{assignment.batch}")
        try:
            document = json.loads(record.raw)
        except (ValueError, RecursionError):
            continue
        number = document.get("task") if isinstance(document, dict) else None
        if project is not None and isinstance(number, int):
            urls[by] = build_studio_task_url(address, project.project, number)
    return urls


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
    max_shown: int = SHOWN
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
    selected = disputed[: settings.max_shown]
    folder = OutputDirectory(out, published=True)
    sources = _copy_disputed_clips(folder, selected, settings.media)
    rows = (
        {
            "clips": task.name,
            "task": task.task.id,
            "settled": "yes" if task.is_settled else "no",
            "distance": f"{task.distance:.4f}",
            "outcome": format_consensus_outcome(task),
            "said": "; ".join(
                f"{o.annotator}: {format_annotator_answer(o.value)}" for o in task.opinions
            ),
        }
        for task in ranked
    )
    folder.write(TASKS, build_csv_table(_COLUMNS, rows).encode())
    progress, times = [], []
    for annotator, counts in count_annotator_tasks(records).items():
        mean = bootstrap_mean(counts.spent_s, seed=settings.seed)
        seconds, interval = format_value_and_interval(mean, places=1)
        notice = records.excluded.get(annotator)
        share = counts.done / counts.given if counts.given else 0.0
        times.append(mean)
        progress.append(
            {
                "annotator": annotator,
                "n_assigned": counts.given,
                "n_judged": counts.done,
                "n_unreadable": counts.quarantined,
                "excluded": "" if notice is None else notice.said or "excluded",
                "percent": f"{100 * share:.0f}",
                "seconds": seconds,
                "doubt": interval,
            }
        )
    agreement = [
        ("everybody", name, *format_value_and_interval(value, places=3))
        for name, value in campaign.agreement.overall.items()
    ]
    groups = (campaign.agreement.by_annotator, campaign.agreement.by_category)
    for who, metrics in (item for group in groups for item in group.items()):
        for metric, value in metrics.items():
            agreement.append((str(who), metric.value, *format_value_and_interval(value, places=3)))
    people = []
    for row in settings.people:
        metric_set = get_protocol(row.protocol).figures
        ranking = metric_set[metric_set.ranks_by(judged=False)]
        cells = format_value_and_interval(row[ranking.metric], places=ranking.places)
        people.append((row.name, row.protocol, ranking.title, *cells, AGAINST[row.against]))
    reasons = Counter(str(getattr(r.outcome, "reason", "")) for r in records.quarantined)
    body = render_template(
        "unreel.annotation:campaign.html",
        campaign=campaign.campaign,
        tiles=(
            (f"{len(campaign.tasks):,}", "tasks"),
            (f"{len(records.current):,} of {len(records.assignments):,}", "judgements received"),
            (f"{len(campaign.consensus.settled):,}", "settled"),
            (f"{len(disputed):,}", "with disagreement"),
            (f"{len(records.quarantined):,}", "unreadable"),
        ),
        disputes=[
            {
                "id": f"task-{i}",
                "name": d.name,
                "is_settled": d.is_settled,
                "percent": f"{100 * d.distance:.0f}",
                "outcome": format_consensus_outcome(d),
                "words": build_displayed_answers(d, settings.links),
                "known": "" if d.task.known is None else format_annotator_answer(d.task.known),
            }
            for i, d in enumerate(selected)
        ],
        n_disputed=len(disputed),
        tasks_file=TASKS,
        progress=progress,
        promise=describe_interval_coverage(times, kind="seconds"),
        agreement=agreement,
        people=people,
        unreadable=records.quarantined[:_UNREADABLE],
        n_unreadable=len(records.quarantined),
        reasons=reasons.most_common(),
        names={id_: " | ".join(task.names) for id_, task in campaign.tasks.items()},
    )
    text = build_html_page(
        title=f"{campaign.campaign.name}: campaign",
        body=body,
        styles=(player.STYLE, "unreel.annotation:campaign.css"),
        scripts=(player.SCRIPT, "unreel.annotation:campaign.js"),
        data={"disputes": [build_task_player_data(d, sources) for d in selected]},
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


def _copy_disputed_clips(
    directory: OutputDirectory, tasks: Sequence[TaskDisagreement], media: Path | None
) -> dict[str, str]:
    """Copy the clips of disputed tasks into the page's folder; return URLs by clip, without failed copies."""
    if media is None:
        return {}
    urls: dict[str, str] = {}
    for copy in (copy for task in tasks for copy in task.task.copies):
        name = f"{MEDIA}/{copy.clip}.mp4"
        if copy.clip not in urls:
            if directory.size(name) is None:
                try:
                    with (
                        OutputDirectory(media).read(copy.location) as source,
                        directory.create(name) as file,
                    ):
                        shutil.copyfileobj(source, file)
                except (OSError, UnsafeTargetError):
                    continue
            urls[copy.clip] = name
    return urls
