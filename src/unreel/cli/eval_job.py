"""A run as `unreel eval` makes it: resolved from what was typed, asked, scored, told."""

import sys
from pathlib import Path
from typing import Any

from unreel.cli.columns import read_mapping
from unreel.cli.condition import read_conditions
from unreel.cli.contacts import tell_contacts
from unreel.cli.heaps import share_heaps
from unreel.cli.meter import Meter, spell_cost
from unreel.cli.output import print_json, say
from unreel.cli.scorecard import print_scores, score_rows
from unreel.cli.stopping import goes_on
from unreel.core.settings import read_settings
from unreel.engine.run import ALL_FAILURES
from unreel.evaluate.finding import plan_run
from unreel.evaluate.job import Outcome, evaluate
from unreel.evaluate.recipe import resolve_recipe
from unreel.evaluate.scoring import score_run
from unreel.media.access import require_protection


def ask_and_score(  # noqa: PLR0913  one parameter for each option
    *,
    recipe: Path | None,
    conditions: tuple[str, ...],
    nframe: int | None,
    fps: str | None,
    mapping: tuple[str, ...],
    out: str | None,
    engine: str,
    retry_failed: bool,
    fail_on_error: float,
    trusted: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Ask what has no answer yet, print the scores, and end the program."""
    flags["condition"] = read_conditions(conditions, nframe=nframe, fps=fps)
    flags["mapping"] = read_mapping(mapping) or None
    resolved = resolve_recipe(recipe, flags)
    share_heaps()
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    tell_contacts([resolved.reviewer.model], settings)
    run = plan_run(resolved, out, settings, trusted=trusted)
    with Meter() as meter, goes_on(run.place.uri, meter):
        outcome = evaluate(
            run,
            engine=engine,
            retry_failed=ALL_FAILURES if retry_failed else (),
            on_due=meter.expect,
            on_step=meter.step,
        )
    scores = score_run(run, mode=resolved.reviewer.parser)
    if as_json:
        told = {"outcome": outcome, "cost_usd": meter.cost_usd, "scores": score_rows(scores)}
        print_json({"run": run.place.uri, **told})
    else:
        _report(outcome, run.place.uri, cost_usd=meter.cost_usd)
        print_scores(scores)
    failed = sum(s.scorecard.n_questions - s.scorecard.n_answered for s in scores)
    asked = sum(s.scorecard.n_questions for s in scores)
    sys.exit(1 if failed > fail_on_error * max(1, asked) else 0)


def _report(outcome: Outcome, uri: str, *, cost_usd: float | None) -> None:
    answers = outcome.answers
    spent = "" if cost_usd is None else f", {spell_cost(cost_usd)} spent on them"
    say(
        f"{outcome.reviewer}: {answers.done} new answers, {answers.failed} new failures{spent}, "
        f"{answers.already} kept from before; run in {uri}"
    )
    for reason, n in {**answers.failures, **outcome.unreadable}.items():
        say(f"  failed: {n} {reason}")
    if outcome.n_rejected:
        first = outcome.rejected[0]
        say(f"  {outcome.n_rejected} rows of the benchmark cannot be used, the first is {first}")
