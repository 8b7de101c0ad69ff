"""Checks of a reviewer's entry, which cost no money.

A model on a server is not sent a question. If the season has a cost limit, its price must be
known.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unreel.arena.season.recipe import SeasonReviewerSection
from unreel.arena.submission.creator_checks import EntryCheckContext
from unreel.arena.submission.entry import EntryFinding, EntryFindingSeverity
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_bytes_clip_id
from unreel.core.errors import UnreelError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import build_question_subject
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Question
from unreel.core.verdict import Unparsed
from unreel.evaluation.recipe import EvalRecipe
from unreel.media.access import open_media_reader, read_sample_clip
from unreel.media.reader import MediaReader
from unreel.reviewers.ask import AskedQuestionResult, ReviewDispatcher
from unreel.reviewers.factory import ReviewerFactory
from unreel.reviewers.registry import FLOORS, RECORDED

PATIENCE_S: Final = 120.0
"""Timeout for the answers about one small clip, in seconds."""
_UNSAID: Final = (FailureReason.NOT_RECORDED,)


def check_reviewer_entry(
    entry: SeasonReviewerSection, grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    """Yield problems: not openable, unknown price, or no answer about a synthesised clip."""
    if entry.model in FLOORS:
        problem = "a baseline takes part in every season without a rank. Enter your own reviewer"
        yield EntryFinding(check="kind", weight=EntryFindingSeverity.REFUSES, words=problem)
        return
    try:
        root = grounds.scenery.benchmark.root
        recipe = grounds.recipe.asks(entry, benchmark=root, base=Path())
        section, settings = recipe.reviewer, grounds.access.settings
        yield from _iter_price_findings(entry, grounds)
        if not section.learns:
            factory = section.opener(
                key_hosts=settings.key_hosts,
                seed=recipe.seed,
                weak_cage=bool(settings.weak_cage),
            )
            # A server is sent no question, which costs money; `opener` checked its name and key.
            if not section.is_served:
                yield from _iter_probe_findings(factory, recipe, grounds)
    except TimeoutError:
        problem = f"no answer about a small clip within {PATIENCE_S:g} s. Make it faster"
        yield EntryFinding(check="probe", weight=EntryFindingSeverity.REFUSES, words=problem)
    except UnreelError as error:
        yield EntryFinding(check="opening", weight=EntryFindingSeverity.REFUSES, words=str(error))


def _iter_price_findings(
    entry: SeasonReviewerSection, grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    if grounds.recipe.budget.max_cost_usd is not None and entry.is_served and entry.price is None:
        problem = "the season has a budget, and no price is known. Name a file of prices"
        yield EntryFinding(check="price", weight=EntryFindingSeverity.REFUSES, words=problem)


def _iter_probe_findings(
    factory: ReviewerFactory, recipe: EvalRecipe, grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    """Ask a reviewer about sample clips under each condition, and yield problems of its answers."""
    access = grounds.access
    with (
        TemporaryDirectory(prefix="unreel-") as folder,
        open_media_reader(access.settings, trusted=access.trusted) as reader,
    ):
        clips = _write_probe_clips(recipe.instrument.n_clips, OutputDirectory(Path(folder)), reader)
        if isinstance(clips, Failure):
            yield EntryFinding(
                check="probe",
                weight=EntryFindingSeverity.WARNS,
                words=f"could not be queried: {clips}",
            )
            return
        desk = ReviewDispatcher(reader)
        try:
            answers = asyncio.run(_ask_each_condition(desk, factory, recipe, clips))
        finally:
            desk.close()
    yield from _iter_answer_findings(answers, recipe)


def _write_probe_clips(
    count: int, folder: OutputDirectory, reader: MediaReader
) -> list[Clip] | Failure:
    clips = []
    for number in range(count):
        data = read_sample_clip(f"sound-24-{number}.mp4")
        file = folder.write(f"probe-{number}.mp4", data)
        facts = reader.probe(file)
        if isinstance(facts, Failure):
            return facts
        clips.append(Clip(id=compute_bytes_clip_id(data), location=str(file), facts=facts))
    return clips


async def _ask_each_condition(
    desk: ReviewDispatcher, factory: ReviewerFactory, recipe: EvalRecipe, clips: Sequence[Clip]
) -> list[AskedQuestionResult]:
    subject, instrument = (
        build_question_subject(*(clip.id for clip in clips)),
        recipe.instrument.instrument,
    )
    conditions = [section.as_condition() for section in recipe.condition]
    judge = factory.open()
    try:
        async with asyncio.timeout(PATIENCE_S):
            return [
                await desk.ask(
                    Question(subject=subject, instrument=instrument, condition=each), clips, judge
                )
                for each in conditions
            ]
    finally:
        await judge.reviewer.close()


def _iter_answer_findings(
    answers: list[AskedQuestionResult], recipe: EvalRecipe
) -> Iterator[EntryFinding]:
    decision = recipe.instrument.wording.decision
    for answer in answers:
        outcome = answer.outcome
        if isinstance(outcome, Failure):
            if recipe.reviewer.model == RECORDED and outcome.reason in _UNSAID:
                continue  # only the benchmark's clips are recorded
            problem = f"it does not answer about a plain clip: {outcome}"
            yield EntryFinding(check="probe", weight=EntryFindingSeverity.REFUSES, words=problem)
            continue
        read = answer.read(recipe.reviewer.parser)
        if read is None or isinstance(decision(read), Unparsed):
            problem = f"its answer cannot be read: {outcome.text[:80]!a}. Answer as the prompt asks"
            yield EntryFinding(check="probe", weight=EntryFindingSeverity.WARNS, words=problem)
