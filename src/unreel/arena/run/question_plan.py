"""Reviewers of a season, the budget, and which questions to send if the budget is too small for all.

A cell is one reviewer and one creator (or the real clips). The information of an answer is about w
(v_r + v_c), where w = p (1 - p) is the variance of the answer, and v_r and v_c are the variances of
the reviewer's ability and the creator's realism. The cell with the most information is next. Within
it the clip of the scene with the fewest questions comes first, so that no scene dominates the
season.
"""

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import ANSWERED_GENERATED, SILENT, SeasonAnswerTable
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.run.outcome import EntrantRunSummary, QuestionPlan
from unreel.arena.season.folder import (
    PLAN,
    EnteredReviewer,
    Season,
    SeasonBudgetSection,
    SeasonEntrants,
    SeasonFolder,
    format_reviewer_folder_name,
)
from unreel.arena.season.scenes import (
    SeasonBenchmark,
    get_entry_scene,
    open_season_clip_facts_table,
)
from unreel.asking.answer_table import ANSWERS
from unreel.core.clip import Clip, Origin
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreelError
from unreel.core.failure import FailureReason
from unreel.core.input_files import parse_json_object
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.progress import JobCallbacks
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.table import LanceTable
from unreel.evaluation.forecast import iter_question_states
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import EvalRun, build_reviewer_factory, evaluate, sum_run_cost_usd
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
from unreel.reviewers.registry import FLOORS


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonRunContext:
    """Season, benchmark, folder, storage access and engine of one run of a season."""

    season: Season
    benchmark: SeasonBenchmark
    folder: SeasonFolder
    access: ClipAccessSettings
    engine: str = "local"
    retry_failed: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeasonQuestion:
    """One question of a season, reduced to the fields that the question plan needs."""

    reviewer: str
    clip: str
    """Name of the clip, or of the pair, in the season's clip set."""
    condition: str
    """Text of the condition, as in the answers table."""
    answered: bool
    failure: str = ""
    """Reason of a stored failure that is not retried; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReviewer:
    """A reviewer of the season, with the recipe of its evaluation."""

    entered: EnteredReviewer
    recipe: EvalRecipe

    def run(self, context: SeasonRunContext) -> EvalRun:
        """Return the evaluation run that stores this reviewer's answers in the season's folder."""
        root = context.folder.run(self.entered.folder)
        return EvalRun(
            place=root,
            recipe=self.recipe,
            access=context.access,
            ledgers=root.path,
            accept_changed=True,
        )


def iter_reviewer_questions(
    reviewer: SeasonReviewer, context: SeasonRunContext, *, retry: Collection[str] = ()
) -> Iterator[SeasonQuestion]:
    """Yield every question for one reviewer about the season's clips, in the order of the benchmark.

    A question that failed for a reason in `retry` counts as unanswered.
    """
    run = reviewer.run(context)
    stored = find_run_recipe(run.place)
    # A trainable baseline has a name after fitting only; it is not needed before the first answer.
    name = stored.reviewer if isinstance(stored, StoredRecipe) else ""
    facts = StoredClipFacts(open_season_clip_facts_table(context.folder))
    for planned, reason in iter_question_states(run, facts, name, retry=retry):
        yield SeasonQuestion(
            reviewer=reviewer.entered.name,
            clip=planned.name,
            condition=str(planned.question.condition),
            answered=reason is not None,
            failure=reason or "",
        )


def build_season_reviewers(
    context: SeasonRunContext,
) -> tuple[list[SeasonReviewer], dict[str, str]]:
    """Return the reviewers of a season, and the problems of those that cannot be opened, by title."""
    season, folder = context.season, context.folder
    reviewers: list[SeasonReviewer] = []
    problems: dict[str, str] = {}
    before = {entrant.folder: entrant.name for entrant in folder.entrants().reviewers}
    for section in season.recipe.judges:
        try:
            recipe = season.asks(section, folder.set)
            name = _format_reviewer_name(context, recipe)
        except UnreelError as error:
            problems[section.shown] = str(error)
            continue
        # The name of the folder never contains the URL of the reviewer's server.
        run = format_reviewer_folder_name(section.shown, name)
        is_used = run in [reviewer.entered.folder for reviewer in reviewers]
        if is_used or section.shown != (section.title or section.model):
            run = format_reviewer_folder_name(section.shown, f"{name} {section.model}")
        conditions = [str(condition.as_condition()) for condition in recipe.condition]
        entered = EnteredReviewer(
            title=section.shown,
            name=name,
            folder=run,
            floor=section.model in FLOORS,
            conditions=dict(zip(season.recipe.titles, conditions, strict=True)),
        )
        reviewers.append(SeasonReviewer(entered=entered, recipe=recipe))
    return _number_reviewer_names(reviewers, before), problems


def _number_reviewer_names(
    reviewers: Sequence[SeasonReviewer], before: Mapping[str, str]
) -> list[SeasonReviewer]:
    """Make equal names of reviewers unique by a number; names of earlier calls stay."""
    used = {before[r.entered.folder] for r in reviewers if r.entered.folder in before}
    numbered = []
    for reviewer in reviewers:
        entered = reviewer.entered
        name, number = before.get(entered.folder), 2
        if name is None:
            name = entered.name
            while name in used:
                name, number = f"{entered.name} {number}", number + 1
        used.add(name)
        numbered.append(replace(reviewer, entered=entered.model_copy(update={"name": name})))
    return numbered


def _format_reviewer_name(context: SeasonRunContext, recipe: EvalRecipe) -> str:
    """Return a reviewer's stable name, with its training data's hash for a trainable baseline."""
    section, settings = recipe.reviewer, context.access.settings
    if section.is_served:
        return section.served_name
    if section.learns:
        clips = (
            f"{e.name} {e.label} {get_entry_scene(e)}" for e in context.benchmark.fitting_entries
        )
        input_spec = digest(str(recipe.seed), context.benchmark.digest, *sorted(clips))
        return f"{section.model}@{input_spec[:8]}"
    return section.opener(key_hosts=settings.key_hosts, seed=recipe.seed).name


def ask_season_reviewer(
    reviewer: SeasonReviewer,
    context: SeasonRunContext,
    *,
    is_selected: Callable[[str, str], bool],
    callbacks: JobCallbacks,
) -> EntrantRunSummary:
    """Send the unanswered questions to the reviewer that `is_selected` selects by condition and clip name."""
    title, run = reviewer.entered.title, reviewer.run(context)

    def count_failed() -> int:
        if not run.answers.exists() or not run.answers.count("failure_reason IS NOT NULL"):
            return 0
        questions = iter_reviewer_questions(reviewer, context)
        return sum(bool(q.failure) for q in questions if is_selected(q.condition, q.clip))

    opened = None
    if reviewer.recipe.reviewer.learns:
        # Fitting is expensive: it is skipped if no question is open.
        questions = iter_reviewer_questions(reviewer, context, retry=context.retry_failed)
        answered = [q.answered for q in questions if is_selected(q.condition, q.clip)]
        if all(answered):
            n_failed = count_failed()
            return EntrantRunSummary(
                title=title, already=len(answered) - n_failed, failed_before=n_failed
            )
        callbacks.on_phase(f"{title} learns from the benchmark")

        def learn_from() -> Iterator[tuple[Clip, Origin, str]]:
            benchmark = context.benchmark
            facts = StoredClipFacts(context.folder.benchmark_clips)
            for entry, clip in facts.find(benchmark.benchmark, benchmark.fitting_entries):
                if isinstance(clip, Clip):
                    yield clip, entry.origin, get_entry_scene(entry)

        try:
            factory = build_reviewer_factory(
                reviewer.recipe, access=context.access, clips=learn_from()
            )
            opened = factory.open().reviewer
        except InvalidValueError as error:
            return EntrantRunSummary(title=title, problem=str(error))
    counts = evaluate(
        run,
        engine=context.engine,
        retry_failed=context.retry_failed,
        reviewer=opened,
        facts_table=open_season_clip_facts_table(context.folder),
        wanted=lambda question: is_selected(question["condition"], question["_name"]),
        callbacks=callbacks,
    ).answers
    failed_before = max(0, count_failed() - counts.failed)
    return EntrantRunSummary(
        title=title,
        done=counts.done,
        already=counts.already - failed_before,
        failures=counts.failures,
        failed_before=failed_before,
    )


SENT = f"failure_reason IS NULL OR failure_reason != '{FailureReason.BUDGET_SPENT.value}'"
"""Condition of the rows of requested clips or sent questions: not those skipped for the budget."""
ORDER = "most information first: w (v_r + v_c) with w = p (1 - p), the clip of the scene asked about least first"
_PRIOR = 4.0
"""Prior variance of an ability or a realism, on the logit scale."""
_PSEUDO = 1.0

CellCounts = Mapping[tuple[str, str], int]
"""Number of answers by reviewer and creator."""


def sum_season_cost_usd(folder: SeasonFolder, entrants: SeasonEntrants) -> Decimal | None:
    """Return the known cost in USD of all clips and answers of a season; `None` if no cost is known."""
    clips = folder.made.rows(["cost_usd"], where="cost_usd IS NOT NULL")
    costs = [Decimal(str(row["cost_usd"])) for row in clips] if folder.made.exists() else []
    for reviewer in entrants.reviewers:
        cost_usd = _find_run_cost(folder, reviewer.folder)
        costs += [] if cost_usd is None else [cost_usd]
    return sum(costs, Decimal()) if costs else None


def compute_remaining_budget_usd(
    folder: SeasonFolder, entrants: SeasonEntrants, budget: SeasonBudgetSection
) -> Decimal | None:
    """Return the remaining budget of the season in USD; `None` if it has no cost limit."""
    if budget.max_cost_usd is None:
        return None
    return budget.max_cost_usd - (sum_season_cost_usd(folder, entrants) or Decimal())


def limit_reviewer_cost(
    reviewer: SeasonReviewer, context: SeasonRunContext, entrants: SeasonEntrants
) -> SeasonReviewer:
    """Return the reviewer with its cost limit lowered to the remaining budget of the season.

    The limit includes the reviewer's earlier cost, like the limit of any run. A reviewer without a
    price is returned unchanged.
    """
    section = reviewer.recipe.reviewer
    left = compute_remaining_budget_usd(context.folder, entrants, context.season.recipe.budget)
    if left is None or section.price is None:
        return reviewer
    if left <= 0:
        raise InvalidSettingError(
            "budget.max_cost_usd", "all of it is spent", "Raise it and run again: answers are kept"
        )
    limit = left + (_find_run_cost(context.folder, reviewer.entered.folder) or Decimal())
    limit = limit if section.max_cost_usd is None else min(limit, section.max_cost_usd)
    capped = section.model_copy(update={"max_cost_usd": limit})
    return replace(reviewer, recipe=reviewer.recipe.model_copy(update={"reviewer": capped}))


def plan_budgeted_questions(
    reviewers: Sequence[SeasonReviewer],
    context: SeasonRunContext,
    entrants: SeasonEntrants,
    current: Collection[str],
) -> QuestionPlan | None:
    """Choose the questions about the `current` clips that fit the budget; `None` if it allows all.

    A stored plan for the same entrants, clips and budget is used again, so that an interrupted
    season resumes it.
    """
    recipe, folder = context.season.recipe, context.folder
    limit = recipe.budget.max_questions
    if limit is None:
        folder.place.remove(PLAN)
        return None
    paid = [reviewer for reviewer in reviewers if not reviewer.entered.floor]
    names = sorted(reviewer.entered.name for reviewer in paid)
    inputs = (recipe.seed, limit, names, list(recipe.titles), sorted(current))
    basis = digest("plan", *(json.dumps(part, sort_keys=True, default=str) for part in inputs))
    before = read_question_plan(folder)
    if before is not None and before.basis == basis:
        return before

    questions = [
        question
        for reviewer in paid
        for question in iter_reviewer_questions(reviewer, context, retry=context.retry_failed)
        if question.clip in current
    ]
    due = [question for question in questions if not question.answered]
    tables = [_open_answers_table(folder, r.folder) for r in entrants.reviewers if not r.floor]
    left = max(0, limit - sum(table.count(SENT) for table in tables if table.exists()))
    if len(due) <= left:
        folder.place.remove(PLAN)
        return None
    clips = read_season_clips(folder)
    answer_tables = [
        read_season_answers(folder, title, clips=clips) for title in entrants.conditions
    ]
    n_answered, n_generated = count_stored_answers(
        answer_tables, entrants.shown(entrants.reviewers)
    )
    chosen = choose_informative_questions(
        questions,
        left,
        creators={
            c: clips.sources[at] for c, at in zip(clips.names, clips.source.tolist(), strict=True)
        },
        scenes={
            c: clips.scenes[at] for c, at in zip(clips.names, clips.scene.tolist(), strict=True)
        },
        n_answered=n_answered,
        n_generated=n_generated,
        seed=recipe.seed,
    )
    selected = set(chosen)
    postponed = Counter(
        q.reviewer for q in due if (q.reviewer, q.condition, q.clip) not in selected
    )
    plan = QuestionPlan(
        seed=recipe.seed,
        basis=basis,
        n_due=len(due),
        chosen=tuple(chosen),
        left=dict(sorted(postponed.items())),
    )
    document: dict[str, Any] = {
        "order": ORDER,
        "seed": plan.seed,
        "basis": plan.basis,
        "n_due": plan.n_due,
        "n_chosen": len(plan.chosen),
        "left": plan.left,
        "chosen": [
            {"reviewer": who, "condition": how, "clip": clip} for who, how, clip in plan.chosen
        ],
    }
    folder.write_json(PLAN, document)
    return plan


def read_question_plan(folder: SeasonFolder) -> QuestionPlan | None:
    """Return the question plan in the season's folder; `None` if it is missing or unreadable."""
    try:
        stored = parse_json_object(folder.place.read(PLAN))
        return QuestionPlan(
            seed=int(stored["seed"]),
            basis=str(stored["basis"]),
            n_due=int(stored["n_due"]),
            chosen=tuple(
                (str(row["reviewer"]), str(row["condition"]), str(row["clip"]))
                for row in stored["chosen"]
            ),
            left={str(who): int(n) for who, n in stored["left"].items()},
        )
    except (
        FileNotFoundError,
        InvalidValueError,
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
    ):
        return None


def _find_run_cost(folder: SeasonFolder, run: str) -> Decimal | None:
    return sum_run_cost_usd(_open_answers_table(folder, run), folder.run(run).path)


def _open_answers_table(folder: SeasonFolder, run: str) -> LanceTable:
    return LanceTable(folder.run(run) / "answers.lance", ANSWERS)


def count_stored_answers(
    answer_tables: Iterable[SeasonAnswerTable], titles: Mapping[str, str]
) -> tuple[CellCounts, CellCounts]:
    """Count all answers and answers "generated"; `titles` maps stable names to the tables' titles."""
    named = {title: name for name, title in titles.items()}
    n_answered, n_generated = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for answers in answer_tables:
        is_read, sources = answers.answer_codes != SILENT, answers.clips.sources
        cells = answers.reviewer[is_read] * len(sources)
        cells = cells + answers.clips.source[answers.clip[is_read]]
        counts = np.bincount(cells)
        generated_counts = np.bincount(
            cells, weights=answers.answer_codes[is_read] == ANSWERED_GENERATED
        )
        for at in np.flatnonzero(counts):
            who, whose = divmod(int(at), len(sources))
            cell = named[answers.reviewers[who]], sources[whose]
            n_answered[cell] += int(counts[at])
            n_generated[cell] += int(generated_counts[at])
    return n_answered, n_generated


def choose_informative_questions(
    questions: Sequence[SeasonQuestion],
    limit: int,
    *,
    creators: Mapping[str, str],
    scenes: Mapping[str, str],
    n_answered: CellCounts,
    n_generated: CellCounts,
    seed: int,
) -> list[tuple[str, str, str]]:
    """Choose at most `limit` unanswered questions, the most informative first.

    `creators` and `scenes` are the creator and the scene of each clip, by name. `seed` orders equal
    questions.
    """
    due = [question for question in questions if not question.answered]
    if len(due) <= limit:
        return [(question.reviewer, question.condition, question.clip) for question in due]

    # A heap for each cell: the question of the scene with the fewest questions is on top.
    n_answers = Counter(scenes[question.clip] for question in questions if question.answered)
    heaps: defaultdict[tuple[str, str], list[tuple[int, str, SeasonQuestion]]] = defaultdict(list)
    for question in due:
        scene = scenes[question.clip]
        tie_break = digest("turn", str(seed), scene, question.clip, question.condition)
        heap = heaps[question.reviewer, creators[question.clip]]
        heapq.heappush(heap, (n_answers[scene], tie_break, question))

    # Information of one more answer in each cell; -1 in a cell without a question.
    rows = sorted({reviewer for reviewer, _ in heaps})
    columns = sorted({creator for _, creator in heaps})
    answered, generated = (
        np.array(
            [[counts.get((row, column), 0) for column in columns] for row in rows], dtype=float
        )
        for counts in (n_answered, n_generated)
    )
    # The probability of an answer "generated" shrinks to one half for few answers.
    p = (generated + _PSEUDO) / (answered + 2 * _PSEUDO)
    variance = p * (1 - p)
    is_open = np.array([[(row, column) in heaps for column in columns] for row in rows])
    row_known, column_known = ((variance * answered).sum(axis) for axis in (1, 0))

    def compute_gain(rows: slice, columns: slice) -> npt.NDArray[np.float64]:
        by_row, by_column = (
            1 / (1 / _PRIOR + row_known[rows]),
            1 / (1 / _PRIOR + column_known[columns]),
        )
        gain = variance[rows, columns] * (by_row[:, None] + by_column[None, :])
        return np.where(is_open[rows, columns], gain, -1.0)

    every = slice(None)
    gain = compute_gain(every, every)
    chosen = []
    for _ in range(limit):
        row, column = divmod(int(gain.argmax()), len(columns))
        heap = heaps[rows[row], columns[column]]
        while True:
            count, tie_break, question = heapq.heappop(heap)
            current = n_answers[scenes[question.clip]]
            if current == count:
                break
            heapq.heappush(heap, (current, tie_break, question))
        n_answers[scenes[question.clip]] += 1
        chosen.append((question.reviewer, question.condition, question.clip))
        row_known[row] += variance[row, column]
        column_known[column] += variance[row, column]
        is_open[row, column] = bool(heap)
        gain[row] = compute_gain(slice(row, row + 1), every)
        gain[:, column : column + 1] = compute_gain(every, slice(column, column + 1))
    return chosen
