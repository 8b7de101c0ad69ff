"""`unreel eval`: a reviewer over a benchmark."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.columns import map_option, read_mapping
from unreel.cli.condition import read_conditions
from unreel.cli.meter import Meter, spell_cost
from unreel.cli.output import json_option, print_json, say, trusted_option
from unreel.cli.scorecard import print_scores
from unreel.core.settings import read_settings
from unreel.engine.run import ALL_FAILURES
from unreel.evaluate.job import Outcome, Run, evaluate
from unreel.evaluate.recipe import resolve_recipe
from unreel.evaluate.scoring import score_run
from unreel.evaluate.whereabouts import find_place, local_folder, open_access


@click.command("eval")
@click.argument("benchmark", required=False)
@click.option(
    "--model",
    help="Who answers: provider/name, provider/name@URL, `recorded`, or a floor (coin, always-real, "
    "always-generated, metadata, motion).",
)
@click.option(
    "--protocol",
    type=click.Choice(["trace", "realism", "reality", "preference"]),
    help="What is asked: where, when and why a clip looks fake; a score from 1 to 5; real or "
    "generated; which of two is real.",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, path_type=Path),
    help="TOML file with these settings; a flag goes before it.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="How questions are put: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, "
    "prompt=VARIANT. Repeat it to ask under several.",
)
@click.option("--nframe", type=click.IntRange(1), help="Show N frames: sampling=uniform-N.")
@click.option("--fps", help="Show F frames of each second: sampling=fps-F.")
@click.option(
    "--out",
    metavar="PLACE",
    help="Where the run is kept: a folder, or s3://bucket/prefix.  "
    "[default: runs/MODEL-PROTOCOL-BENCHMARK]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="What runs the work: this process, or Ray Data.",
)
@click.option("--layout", help="How BENCHMARK lies on disk, where it could be several.")
@map_option
@click.option("--split", help="Ask about this split alone.")
@click.option("--limit", type=click.IntRange(1), help="Ask about the first clips only.")
@click.option(
    "--recorded", metavar="FILE", help="JSONL with the answers that the model `recorded` replays."
)
@click.option("--max-connections", type=click.IntRange(1), help="Questions under way at once.")
@click.option("--max-requests", type=click.IntRange(1), help="Stop asking after this many.")
@click.option("--max-cost-usd", type=float, help="Stop asking when this is spent; needs --prices.")
@click.option("--prices", metavar="FILE", help="TOML file of prices per model, to tell the cost.")
@click.option(
    "--deadline", "deadline_s", type=float, help="Seconds for one question, retries included."
)
@click.option("--retry-failed", is_flag=True, help="Ask again what failed before.")
@click.option(
    "--fail-on-error",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of failed questions up to which the status is still 0.",
)
@trusted_option
@json_option
def eval_(  # noqa: PLR0913  one parameter for each option
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
    """Put every question about BENCHMARK to a reviewer, keep the answers, and score them.

    BENCHMARK is a folder or a table of clips with their truth; clips may lie at s3:// locations.
    A second call with the same --out asks only what has no answer yet, after a kill -9 too.
    """
    flags["condition"] = read_conditions(conditions, nframe=nframe, fps=fps)
    flags["mapping"] = read_mapping(mapping) or None
    resolved = resolve_recipe(recipe, flags)
    settings = read_settings()
    access = open_access(settings, trusted=trusted)
    named = out or str(Path("runs") / _slug(resolved.model, resolved.protocol, resolved.benchmark))
    place = find_place(named, access.storage)
    run = Run(place=place, recipe=resolved, access=access, ledgers=local_folder(place, settings))
    with Meter() as meter:
        outcome = evaluate(
            run,
            engine=engine,
            retry_failed=ALL_FAILURES if retry_failed else (),
            on_due=meter.expect,
            on_step=meter.step,
        )
    scores = score_run(run)
    if as_json:
        told = {"outcome": outcome, "cost_usd": meter.cost_usd, "scores": scores}
        print_json({"run": place.uri, **told})
    else:
        _report(outcome, place.uri, cost_usd=meter.cost_usd)
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


def _slug(*parts: str) -> str:
    words = [Path(part).name.partition("@")[0] for part in parts]
    return "-".join("".join(c if c.isalnum() or c in "._" else "-" for c in w) for w in words)
