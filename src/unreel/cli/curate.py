"""`unreel curate`: raw video to a frozen benchmark."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from unreel.cli.output import json_option, print_json, print_table, say, trusted_option
from unreel.core.settings import read_settings
from unreel.core.trace import Category, Trace
from unreel.curate.diff import compare
from unreel.curate.injection.clip import inject_clip
from unreel.curate.job import Curation, State
from unreel.curate.job import curate as take_steps
from unreel.curate.recipe import CATEGORIES, Recipe, check_recipe, read_recipe
from unreel.curate.step import Workbench
from unreel.engine.access import Access
from unreel.engine.committer import Progress
from unreel.engine.place import Place
from unreel.engine.run import ALL_FAILURES, ENGINES
from unreel.media.access import media_reader

F = TypeVar("F", bound=Callable[..., Any])

_TELL_EVERY_S: Final = 2.0


@click.group()
def curate() -> None:
    """Turn raw video into a frozen, audited benchmark, by one recipe."""


def job_options(command: F) -> F:
    """Add what every command that takes steps of a recipe has in common."""
    options = (
        click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        click.option("--out", help="Working folder, or s3:// prefix.  [default: curations/NAME]"),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="SECTION.KEY=VALUE",
            help="Change the recipe, for example normalise.width=640. Repeatable.",
        ),
        click.option(
            "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True
        ),
        click.option(
            "--workers",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Processes for each step on ray.",
        ),
        click.option("--accept-leak", is_flag=True, help="Freeze although the audit fails."),
        click.option("--retry-failed", is_flag=True, help="Try again what failed before."),
        trusted_option,
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@curate.command()
@job_options
def run(*, as_json: bool, **given: Any) -> None:
    """Take every step of RECIPE, from raw files to the frozen benchmark.

    A second call does only what is not done yet, after a kill -9 too.
    """
    _take(_open(**given), until=None, as_json=as_json)


@curate.command()
@click.argument("name")
@job_options
def step(*, name: str, as_json: bool, **given: Any) -> None:
    """Take the steps of RECIPE up to NAME, and no further."""
    _take(_open(**given), until=name, as_json=as_json)


@curate.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option("--normalise", is_flag=True, help="Audit the clips in one normal form.")
@click.option("--texts/--no-texts", default=True, show_default=True, help="Read texts on clips.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", help="Working folder.  [default: curations/audit-NAME]")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@trusted_option
@json_option
def audit(  # noqa: PLR0913  one parameter for each option
    *,
    benchmark: Path,
    normalise: bool,
    texts: bool,
    seed: int,
    out: str | None,
    engine: str,
    trusted: bool,
    as_json: bool,
) -> None:
    """Tell whether the labels of BENCHMARK can be told without looking. Status 1 where they leak."""
    values = {
        "name": f"audit-{benchmark.name}",
        "seed": seed,
        "source": {"path": str(benchmark.absolute())},
        "audit": {"texts": texts},
    }
    resolved = check_recipe(values | ({"normalise": {}} if normalise else {}))
    bench = _bench(resolved, out=out, engine=engine, trusted=trusted)
    state = take_steps(Curation(recipe=resolved, root=Path.cwd(), bench=bench), until="audit")
    if state.audit is not None:
        if as_json:
            print_json(state.audit.document)
        else:
            click.echo(state.audit.text)
    for reason, n in state.reasons.items():
        say(f"  left out: {n} {reason}")
    sys.exit(1 if state.leaks else 0)


@curate.command()
@click.argument("clip", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--category",
    type=click.Choice([category.value for category in CATEGORIES]),
    required=True,
    help="What goes wrong.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write.  [default: CLIP+CATEGORY.mp4]"
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--strength", type=click.FloatRange(0, 1, min_open=True), default=0.7)
@trusted_option
@json_option
def inject(  # noqa: PLR0913  one parameter for each option
    *,
    clip: Path,
    category: str,
    out: Path | None,
    seed: int,
    strength: float,
    trusted: bool,
    as_json: bool,
) -> None:
    """Write CLIP with one known trace in it, and print the truth about the trace."""
    into = out or Path(f"{clip.stem}+{category}.mp4")
    with media_reader(read_settings(), trusted=trusted) as reader:
        trace = inject_clip(
            clip,
            reader=reader,
            category=Category(category),
            seed=seed,
            into=into,
            strength=strength,
        )
    if not isinstance(trace, Trace):
        say(f"{clip}: {trace}")
        sys.exit(1)
    if as_json:
        print_json({"file": str(into), "trace": trace})
    else:
        span = trace.span
        click.echo(f"{into}: {span.start_us / 1e6:.3f} s to {span.end_us / 1e6:.3f} s, {category}")
        click.echo(trace.explanation)


@curate.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@json_option
def diff(*, before: Path, after: Path, as_json: bool) -> None:
    """Tell which clips were added, removed or changed from BEFORE to AFTER."""
    found = compare(before, after)
    if as_json:
        print_json(found)
        return
    rows = [{"clip": name, "change": "added", "before": "", "after": ""} for name in found.added]
    rows += [
        {"clip": name, "change": "removed", "before": "", "after": ""} for name in found.removed
    ]
    rows += [
        {"clip": new, "change": "renamed", "before": old, "after": new}
        for old, new in found.renamed
    ]
    rows += [
        {"clip": one.name, "change": one.field, "before": one.before, "after": one.after}
        for one in found.changed
    ]
    if rows:
        print_table(tuple(rows[0]), rows)
    say(f"{found.n_same} clips are the same, {len(rows)} differences")


def _open(  # noqa: PLR0913  one parameter for each option
    *,
    recipe: Path,
    out: str | None,
    changes: tuple[str, ...],
    engine: str,
    workers: int,
    accept_leak: bool,
    retry_failed: bool,
    trusted: bool,
) -> Curation:
    resolved = read_recipe(recipe, changes)
    bench = _bench(resolved, out=out, engine=engine, trusted=trusted)
    if engine == "ray":
        bench = replace(bench, engine=ENGINES.load(engine)(workers=workers))
    if retry_failed:
        bench = replace(bench, retry_failed=ALL_FAILURES)
    return Curation(
        recipe=resolved, root=recipe.absolute().parent, bench=bench, accept_leak=accept_leak
    )


def _bench(recipe: Recipe, *, out: str | None, engine: str, trusted: bool) -> Workbench:
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in recipe.name)
    folder = out or f"curations/{name}"
    place = Place(folder if "://" in folder else str(Path(folder).absolute()))
    return Workbench(
        place=place,
        access=Access(settings=read_settings(), trusted=trusted),
        ledgers=place.path / "ledgers" if place.is_local else Path("curations") / name,
        engine=engine,
        on_progress=_Meter(),
    )


def _take(curation: Curation, *, until: str | None, as_json: bool) -> None:
    state = take_steps(curation, until=until)
    if as_json:
        print_json(_summary(curation, state))
    else:
        _report(curation, state)
    sys.exit(1 if state.n_failed or _withheld(state) else 0)


def _withheld(state: State) -> bool:
    return "freeze" in state.steps and state.frozen is None


def _summary(curation: Curation, state: State) -> dict[str, object]:
    return {
        "out": curation.bench.place.uri,
        "steps": state.steps,
        "clips": len(state.pieces),
        "left_out": state.reasons,
        "audit": state.audit and state.audit.document,
        "frozen": state.frozen,
    }


def _report(curation: Curation, state: State) -> None:
    say(f"steps: {', '.join(state.steps)}; working folder {curation.bench.place.uri}")
    for reason, n in state.reasons.items():
        say(f"  left out: {n} {reason}")
    say(f"{len(state.pieces)} clips")
    if state.audit is not None:
        say(state.audit.text)
    if _withheld(state):
        say("not frozen: the labels leak. Mend it, for example by [normalise], or --accept-leak")
    if state.frozen is not None:
        sizes = ", ".join(f"{n} {split}" for split, n in state.frozen.clips.items())
        say(f"frozen: {sizes}; digest {state.frozen.digest[:16]}")
        click.echo(state.frozen.place)


class _Meter:
    """Tells how far a step is, at most once in two seconds."""

    def __init__(self) -> None:
        self._told_s = 0.0

    def __call__(self, step_name: str, progress: Progress) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EVERY_S:
            self._told_s = now_s
            n_failed = sum(progress.failures.values())
            say(f"{step_name}: {progress.done} done, {n_failed} failed")
