"""Budget of a season: requested clips, sent questions and cost, and the questions that still fit."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from unreel.arena.answers.answer_table import SeasonClips
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.run.question_plan import (
    QuestionPlan,
    SeasonReviewer,
    choose_informative_questions,
    count_stored_answers,
    hash_question_plan_inputs,
    iter_reviewer_questions,
    read_question_plan,
    write_question_plan,
)
from unreel.arena.run.reviewers import SeasonRunContext
from unreel.arena.season.folder import PLAN, SeasonEntrants, SeasonFolder
from unreel.arena.season.recipe import SeasonBudgetSection
from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.engine.table import LanceTable
from unreel.evaluation.run_job import sum_run_cost_usd as run_spent_usd

_PUT = f"failure_reason IS NULL OR failure_reason != '{FailureReason.BUDGET_SPENT.value}'"


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

    Raises:
        InvalidSettingError: The budget of the season is spent.
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


def count_requested_clips(folder: SeasonFolder) -> int:
    """Count the clips requested from creators: failed ones too, not those skipped for the budget."""
    return folder.made.count(_PUT) if folder.made.exists() else 0


def count_sent_questions(folder: SeasonFolder, entrants: SeasonEntrants) -> int:
    """Return the number of questions that a season sent to reviewers, without baselines."""
    tables = [_open_answers_table(folder, r.folder) for r in entrants.reviewers if not r.floor]
    return sum(table.count(_PUT) for table in tables if table.exists())


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
    paid = [judge for judge in reviewers if not judge.entered.floor]
    if limit is None:
        folder.place.remove(PLAN)
        return None
    names = sorted(judge.entered.name for judge in paid)
    basis = hash_question_plan_inputs(
        recipe.seed, limit, names, list(recipe.titles), sorted(current)
    )
    before = read_question_plan(folder)
    if before is not None and before.basis == basis:
        return before
    plan = _build_question_plan(paid, context, entrants, current, basis=basis, limit=limit)
    if plan is None:
        folder.place.remove(PLAN)
    else:
        write_question_plan(folder, plan)
    return plan


def _build_question_plan(
    reviewers: Sequence[SeasonReviewer],
    context: SeasonRunContext,
    entrants: SeasonEntrants,
    current: Collection[str],
    *,
    basis: str,
    limit: int,
) -> QuestionPlan | None:
    folder, seed = context.folder, context.season.recipe.seed
    questions = [
        question
        for judge in reviewers
        for question in iter_reviewer_questions(
            judge, folder, context.access, retry=context.retry_failed
        )
        if question.clip in current
    ]
    due = [question for question in questions if not question.answered]
    left = max(0, limit - count_sent_questions(folder, entrants))
    if len(due) <= left:
        return None
    clips = read_season_clips(folder)
    answer_tables = [
        read_season_answers(folder, title, clips=clips) for title in entrants.conditions
    ]
    chosen = choose_informative_questions(
        questions,
        left,
        makers=_map_clips_to_names(clips, clips.sources, clips.source),
        scenes=_map_clips_to_names(clips, clips.scenes, clips.scene),
        counts=count_stored_answers(answer_tables, entrants.shown(entrants.reviewers)),
        seed=seed,
    )
    selected = set(chosen)
    gone = Counter(q.reviewer for q in due if (q.reviewer, q.condition, q.clip) not in selected)
    return QuestionPlan(
        seed=seed,
        basis=basis,
        n_due=len(due),
        chosen=tuple(chosen),
        left=dict(sorted(gone.items())),
    )


def _map_clips_to_names(
    clips: SeasonClips, names: Sequence[str], index: npt.NDArray[np.integer]
) -> dict[str, str]:
    return dict(zip(clips.names, (names[at] for at in index.tolist()), strict=True))


def _find_run_cost(folder: SeasonFolder, run: str) -> Decimal | None:
    return run_spent_usd(_open_answers_table(folder, run), folder.run(run).path)


def _open_answers_table(folder: SeasonFolder, run: str) -> LanceTable:
    return LanceTable(folder.run(run) / "answers.lance", ANSWERS)
