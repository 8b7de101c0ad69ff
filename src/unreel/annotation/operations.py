"""Operations of a campaign's commands: push to Label Studio, pull answers, report progress."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from unreel.annotation.assignment import assign
from unreel.annotation.browser_copies import CopyResult, copy_urls, make_copies
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    Campaign,
    ClipCopy,
)
from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign
from unreel.annotation.interfaces.screens import AnnotationScreen, get_screen
from unreel.annotation.judgements import ScreeningAnswer, Value
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.accounts import create_accounts
from unreel.annotation.studio.client import StudioClient
from unreel.annotation.studio.push import PushRequest, PushResult, push_assignments
from unreel.annotation.studio.settings import read_copy_name_key
from unreel.annotation.tasks import (
    TaskSubject,
    make_tasks,
    read_subjects,
    select_known_answers,
    select_subjects,
)
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks, Progress
from unreel.engine.storage_access import StorageAccess

SHARE: Final = 0.5
"""Fraction of prefilled tasks among those with earlier annotations; the rest stays blind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOrder:
    """Settings of a push: question, clips and annotators."""

    benchmark: Path
    campaign: str
    interface: AnnotationInterface
    annotators: tuple[Annotator, ...]
    overlap: int = 3
    seed: int = 0
    question: str = ""
    n_gold: int = 0
    prefill: Mapping[str, Value] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of the two clips of each; empty for all pairs that there are."""
    guidelines: str = ""
    """"" for those that come with the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushContext:
    """Context of a push: ledger, server and copies."""

    ledger: Ledger
    client: StudioClient
    place: StorageLocation
    """Of the copies."""
    access: StorageAccess
    folder: Path
    """Of the state: passwords that are made are kept there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReport:
    """Result of a push."""

    campaign: str
    tasks: int
    new_tasks: int
    batch: int
    """Number of the batch that the new tasks are; that of the last where none is new."""
    pushed: PushResult
    failures: Mapping[str, Failure]
    """Clips that have no copy, and why."""
    rejected: tuple[Rejected, ...]


def push(order: PushOrder, desk: PushContext, callbacks: JobCallbacks) -> PushReport:
    """Copy the clips, deal the tasks that the campaign lacks, and bring all before their annotators.

    It may be killed at any moment and run again with the same order. New clips of the benchmark, and
    clips that can be read now, become a batch of their own.
    """
    rejected: list[Rejected] = []
    screen = get_screen(order.interface, question=order.question)
    subjects = read_subjects(order.benchmark, interface=order.interface, refused=rejected.append)
    subjects = select_subjects(subjects, order.pairs)
    copies, failures = _copy_all(subjects, desk, callbacks)
    tasks = make_tasks(
        subjects, copies, interface=order.interface, prefill=order.prefill, pairs=order.pairs
    )
    if not tasks:
        setting, problem = "BENCH", f"no clip of {order.benchmark} can be shown"
        why = "; ".join(sorted({str(failure) for failure in failures.values()})[:3])
        raise InvalidSettingError(setting, f"{problem} ({why})", "Name clips that can be decoded")
    campaign = _start_campaign(order, screen, desk.ledger)
    gold = _select_gold_answers(order, tasks, subjects, desk.ledger)
    n_new, batch = _assign_new_tasks(order, tasks, gold, desk.ledger)
    people = desk.ledger.annotators()
    involved = {each.annotator for each in desk.ledger.assignments(order.campaign)}
    accounts = create_accounts(
        desk.client, [one for one in people if one.name in involved], folder=desk.folder
    )
    callbacks.on_due("tasks", sum(1 for _ in desk.ledger.assignments(order.campaign)))
    delivery = PushRequest(
        client=desk.client,
        ledger=desk.ledger,
        campaign=campaign,
        screen=screen,
        accounts=accounts,
        find_urls=lambda task: copy_urls(desk.place, [copy.location for copy in task.copies]),
    )
    return PushReport(
        campaign=order.campaign,
        tasks=len(tasks),
        new_tasks=n_new,
        batch=batch,
        pushed=push_assignments(
            delivery, heard=lambda n: callbacks.on_step("tasks", Progress(done=n))
        ),
        failures=failures,
        rejected=tuple(rejected),
    )


def write_decisions(ledger: Ledger, campaign: str, file: Path) -> dict[str, int]:
    """Write the decisions about the segments of a queue, as `decisions` of `[screen]` in a recipe; return their counts.

    A segment has a decision if more than half of its annotators agree; the others keep the proposal
    of the screens.
    """
    records = read_campaign(ledger, campaign)
    asked = Counter(task for _, task in records.assignments)
    said: dict[str, Counter[bool]] = {}
    for judgement in iter_valid_judgements(records):
        if isinstance(judgement.value, ScreeningAnswer):
            said.setdefault(judgement.task.id, Counter())[judgement.value.keep] += 1
    told = Counter[str]()
    with OutputDirectory(file.parent).create_text(file.name) as lines:
        for id_, votes in said.items():
            (keep, n), *_ = votes.most_common()
            if 2 * n > asked[id_]:
                decision = "keep" if keep else "remove"
                told[decision] += 1
                row = {"piece": records.tasks[id_].names[0], "decision": decision}
                lines.write(json.dumps(row) + "\n")
            else:
                told["undecided"] += 1
    return dict(told)


def _copy_all(
    subjects: list[TaskSubject], desk: PushContext, callbacks: JobCallbacks
) -> tuple[dict[str, ClipCopy], dict[str, Failure]]:
    copies: dict[str, ClipCopy] = {}
    failures: dict[str, Failure] = {}
    progress = Progress()

    def count(one: CopyResult) -> None:
        if isinstance(one.result, Failure):
            progress.failures[one.result.reason.value] += 1
        else:
            progress.done += 1
        callbacks.on_step("copies", progress)

    callbacks.on_due("copies", len(subjects))
    wanted = [subject.wanted for subject in subjects]
    key = read_copy_name_key(desk.folder)
    made = make_copies(wanted, place=desk.place, access=desk.access, key=key, heard=count)
    for copied in made:
        if isinstance(copied.result, Failure):
            failures[copied.name] = copied.result
        else:
            copies[copied.name] = copied.result
    return copies, failures


def _start_campaign(order: PushOrder, screen: AnnotationScreen, ledger: Ledger) -> Campaign:
    campaign = Campaign(
        name=order.campaign,
        interface=order.interface,
        benchmark=str(order.benchmark.absolute()),
        overlap=order.overlap,
        seed=order.seed,
        guidelines=order.guidelines or screen.guidelines,
        interface_version=screen.version,
    )
    ledger.enlist(order.annotators)
    ledger.open_campaign(campaign)
    return campaign


def _select_gold_answers(
    order: PushOrder, tasks: list[AnnotationTask], subjects: list[TaskSubject], ledger: Ledger
) -> dict[str, Value]:
    """Choose the known answers for the campaign's first batch; return {} for later batches."""
    if not order.n_gold or any(list(ledger.assignments(order.campaign))):
        return {}
    return select_known_answers(
        tasks, subjects, interface=order.interface, n=order.n_gold, seed=order.seed
    )


def _assign_new_tasks(
    order: PushOrder, tasks: list[AnnotationTask], gold: Mapping[str, Value], ledger: Ledger
) -> tuple[int, int]:
    """Assign the unassigned tasks to annotators; return their number and the batch's number."""
    given = list(ledger.assignments(order.campaign))
    assigned, last = {each.task for each in given}, max((each.batch for each in given), default=0)
    new = [replace(task, known=gold.get(task.id)) for task in tasks if task.id not in assigned]
    if not new:
        return 0, last
    ledger.add_tasks(order.campaign, new)
    dealt = assign(
        new,
        [annotator.name for annotator in order.annotators],
        overlap=order.overlap,
        seed=order.seed,
        batch=last + 1,
        prefilled_share=SHARE if order.prefill else None,
        gold=list(gold),
    )
    ledger.assign(order.campaign, dealt)
    return len(new), last + 1
