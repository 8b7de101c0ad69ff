"""`unreel eval`: a reviewer over a benchmark."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from unreel.cli.output import json_option, print_json, say, trusted_option
from unreel.cli.scorecard import print_scores
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_settings
from unreel.engine.access import Access
from unreel.engine.committer import Progress
from unreel.engine.place import Place
from unreel.engine.run import ALL_FAILURES
from unreel.evaluate.job import Outcome, Run, evaluate
from unreel.evaluate.recipe import resolve_recipe
from unreel.evaluate.scoring import score_run


@click.command("eval")
@click.argument("benchmark", required=False)
@click.option("--model", help="provider/name, provider/name@URL, or a floor: coin, metadata, ...")
@click.option(
    "--protocol",
    type=click.Choice(["trace", "realism", "reality", "preference"]),
    help="Instrument.",
)
@click.option(
    "--recipe", type=click.Path(exists=True, path_type=Path), help="TOML; flags go first."
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="For example sampling=paper-8,audio=on. Repeatable: each is asked.",
)
@click.option("--nframe", type=click.IntRange(1), help="Short for sampling=uniform-N.")
@click.option("--fps", help="Short for sampling=fps-F.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: runs/...]"
)
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--layout", help="How BENCHMARK lies on disk; found by itself.")
@click.option("--split", help="Ask about this split alone.")
@click.option("--limit", type=click.IntRange(1), help="Ask about the first clips only.")
@click.option("--recorded", help="The answers that the model `recorded` replays.")
@click.option("--max-connections", type=click.IntRange(1), help="Questions under way at once.")
@click.option("--max-requests", type=click.IntRange(1), help="Stop asking after this many.")
@click.option("--max-cost-usd", type=float, help="Stop asking when this is spent; needs --prices.")
@click.option("--prices", help="TOML file of prices per model.")
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
    out: Path | None,
    engine: str,
    retry_failed: bool,
    fail_on_error: float,
    trusted: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Put every question about BENCHMARK to a reviewer, keep the answers, and score them.

    A second call with the same folder asks only what has no answer yet.
    """
    flags["condition"] = _conditions(conditions, nframe=nframe, fps=fps)
    resolved = resolve_recipe(recipe, flags)
    folder = out or Path("runs") / _slug(resolved.model, resolved.protocol, resolved.benchmark)
    run = Run(
        place=Place(str(folder)),
        recipe=resolved,
        access=Access(settings=read_settings(), trusted=trusted),
        ledgers=folder,
    )
    outcome = evaluate(
        run,
        engine=engine,
        retry_failed=ALL_FAILURES if retry_failed else (),
        on_step=_Meter(),
    )
    scores = score_run(run)
    if as_json:
        print_json({"run": str(folder), "outcome": outcome, "scores": scores})
    else:
        _report(outcome, folder)
        print_scores(scores)
    failed = sum(s.scorecard.n_questions - s.scorecard.n_answered for s in scores)
    asked = sum(s.scorecard.n_questions for s in scores)
    sys.exit(1 if failed > fail_on_error * max(1, asked) else 0)


class _Meter:
    """Tells how far a run is, at most once a second."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._told_s = 0.0

    def __call__(self, part: str, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < 1:
            return
        self._told_s = now_s
        n_failed = sum(progress.failures.values())
        rate = (progress.done + n_failed) / max(now_s - self._began_s, 0.001)
        causes = "".join(f", {n} {reason}" for reason, n in progress.failures.most_common(3))
        say(f"{part}: {progress.done} done at {rate:.1f}/s{causes}")


def _report(outcome: Outcome, folder: Path) -> None:
    answers = outcome.answers
    say(
        f"{outcome.reviewer}: {answers.done} new answers, {answers.failed} new failures, "
        f"{answers.already} kept from before; run in {folder}"
    )
    for reason, n in {**answers.failures, **outcome.unreadable}.items():
        say(f"  failed: {n} {reason}")
    if outcome.n_rejected:
        first = outcome.rejected[0]
        say(f"  {outcome.n_rejected} rows of the benchmark cannot be used, the first is {first}")


def _conditions(
    given: tuple[str, ...], *, nframe: int | None, fps: str | None
) -> list[Mapping[str, str]] | None:
    if nframe is not None and fps is not None:
        option, remedy = "--nframe", "Give one of --nframe and --fps"
        raise InvalidSettingError(option, "cannot be combined with --fps", remedy)
    plan = f"uniform-{nframe}" if nframe else f"fps-{fps}" if fps else None
    short = {} if plan is None else {"sampling": plan}
    if not given:
        return [short] if short else None
    return [short | _read_condition(text) for text in given]


def _read_condition(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and value for name, _, value in parts):
        option, remedy = "--condition", "Write NAME=VALUE,NAME=VALUE, for example sampling=paper-8"
        raise InvalidSettingError(option, f"cannot use {text!r}", remedy)
    return {name: value for name, _, value in parts}


def _slug(*parts: str) -> str:
    words = [Path(part).name.partition("@")[0] for part in parts]
    return "-".join("".join(c if c.isalnum() or c in "._" else "-" for c in w) for w in words)
