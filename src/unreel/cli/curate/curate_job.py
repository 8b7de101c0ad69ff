"""Curation from the command line: steps, progress and result."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.cli.contacted_services import print_endpoints
from unreel.cli.memory_settings import limit_heaps
from unreel.cli.output import echo, print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.cli.stop_signals import note_resume_command
from unreel.core.settings import read_settings
from unreel.curation.contact_sheet import ContactSheet, SheetWish, write_sheet
from unreel.curation.curation_run import CurationRun, curate, open_bench, plan_steps
from unreel.curation.forecast import RecipeForecast, check
from unreel.curation.hub_dataset import AcceptedRisks, HubFolder, publish
from unreel.curation.piece import GIVE_LICENCE, NO_LICENCE
from unreel.curation.recipe import CurateRecipe, check_recipe, read_recipe
from unreel.curation.state import CurationState
from unreel.curation.step import CurationContext
from unreel.engine.resolve_location import open_access
from unreel.engine.run import ALL_FAILURES, ENGINES
from unreel.media.access import media_reader, require_protection


def _open_curation_run(  # noqa: PLR0913  one parameter for each option
    *,
    recipe: Path,
    out: str | None,
    changes: tuple[str, ...],
    engine: str,
    workers: int | None,
    accept_leak: bool,
    retry_failed: bool,
    outside: bool,
    trusted: bool,
) -> CurationRun:
    resolved = read_recipe(recipe, changes)
    bench = _build_curation_context(resolved, out=out, engine=engine, trusted=trusted)
    bench = replace(bench, access=replace(bench.access, outside=outside))
    if engine == "ray":
        bench = replace(bench, engine=ENGINES.load(engine)(workers=workers))
    if retry_failed:
        bench = replace(bench, retry_failed=ALL_FAILURES)
    return CurationRun(
        recipe=resolved, root=recipe.absolute().parent, bench=bench, accept_leak=accept_leak
    )


def _build_curation_context(
    recipe: CurateRecipe, *, out: str | None, engine: str, trusted: bool
) -> CurationContext:
    limit_heaps()
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    return open_bench(recipe, out, open_access(settings, trusted=trusted), engine=engine)


def audit_benchmark(
    values: Mapping[str, Any], *, out: str | None, engine: str, trusted: bool
) -> CurationState:
    """Take the steps of a recipe that only audits."""
    recipe = check_recipe(values)
    bench = _build_curation_context(recipe, out=out, engine=engine, trusted=trusted)
    return _run_curation(CurationRun(recipe=recipe, root=Path.cwd(), bench=bench), until="audit")


def check_file(recipe: Path, changes: Sequence[str], *, outside: bool) -> RecipeForecast:
    """Return the forecast of the recipe in that file."""
    resolved = read_recipe(recipe, changes)
    access = replace(open_access(read_settings()), outside=outside)
    return check(resolved, root=recipe.absolute().parent, access=access)


def write_contact_sheet(
    folder: Path, *, out: Path | None, most: int, seed: int, roots: tuple[Path, ...], trusted: bool
) -> ContactSheet:
    """Write the contact sheet of `folder`."""
    wish = SheetWish(most=most, seed=seed, roots=roots)
    with media_reader(read_settings(), trusted=trusted) as reader:
        return write_sheet(folder, wish=wish, reader=reader, out=out)


def publish_frozen(
    folder: Path, *, out: Path | None, repo: str | None, leak: bool, no_licence: bool
) -> HubFolder:
    """Write the folder for a hub from the frozen benchmark in `folder`."""
    accepted = AcceptedRisks(leak=leak, no_licence=no_licence)
    return publish(folder, accepted=accepted, out=out, repo=repo)


def take(options: Mapping[str, Any], *, until: str | None, as_json: bool) -> None:
    """Run the steps up to `until`, print the result, and exit."""
    curation = _open_curation_run(**options)
    state = _run_curation(curation, until=until)
    if as_json:
        print_json(_build_summary(curation, state))
    else:
        _print_curation_report(curation, state)
    sys.exit(1 if state.n_failed or _is_freeze_blocked(state) else 0)


def _run_curation(curation: CurationRun, *, until: str | None) -> CurationState:
    print_endpoints(_list_model_names(curation.recipe, until), curation.bench.access.settings)
    with ProgressMeter() as meter, note_resume_command(curation.bench.place.uri, meter):
        bench = replace(curation.bench, callbacks=meter.callbacks())
        return curate(replace(curation, bench=bench), until=until)


def _list_model_names(recipe: CurateRecipe, until: str | None) -> list[str]:
    planned = plan_steps(recipe)
    taken = planned[: planned.index(until) + 1] if until in planned else planned
    return [recipe.describe.model] if recipe.describe and "describe" in taken else []


def _is_freeze_blocked(state: CurationState) -> bool:
    return "freeze" in state.steps and state.frozen is None


def _build_summary(curation: CurationRun, state: CurationState) -> dict[str, object]:
    return {
        "out": curation.bench.place.uri,
        "steps": state.steps,
        "clips": len(state.pieces),
        "left_out": state.reasons,
        "audit": state.audit and state.audit.document,
        "frozen": state.frozen,
    }


def _print_curation_report(curation: CurationRun, state: CurationState) -> None:
    print_message(f"steps: {', '.join(state.steps)}; working folder {curation.bench.place.uri}")
    for reason, n in state.reasons.items():
        print_message(f"  excluded: {n} {reason}")
    if state.lacks_licences:
        print_message(f"  {NO_LICENCE}: {GIVE_LICENCE}")
    print_message(f"{len(state.pieces)} clips")
    if state.audit is not None:
        print_message(*state.audit.text.split("\n"))
    if _is_freeze_blocked(state):
        print_message(
            "not frozen: the labels leak. Fix it, for example by [normalise], or use --accept-leak"
        )
    if state.frozen is not None:
        sizes = ", ".join(f"{n} {split}" for split, n in state.frozen.clips.items())
        print_message(f"frozen: {sizes}; digest {state.frozen.digest[:16]}")
        place = curation.bench.place.uri
        print_message(
            f"next: unreel curate sheet {place} to look at it, publish {place} to hand it on"
        )
        echo(state.frozen.place)
