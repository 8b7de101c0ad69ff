"""Implementation of `unreel curate`: run the steps of a recipe, and print progress and result."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.cli.contacted_services import print_model_servers
from unreel.cli.output import echo, print_json, print_message
from unreel.cli.process_signals import add_resume_note_on_stop, limit_malloc_arenas
from unreel.cli.progress import ProgressMeter
from unreel.core.settings import read_environment_settings
from unreel.curation.contact_sheet import (
    ContactSheetSettings,
    WrittenContactSheet,
    write_contact_sheet_page,
)
from unreel.curation.curation_run import (
    CurationForecast,
    CurationRecipeJob,
    forecast_curation,
    list_recipe_steps,
    open_curation_context,
    run_curation,
)
from unreel.curation.hub_dataset import AcceptedPublishingRisks, HubDatasetFolder, write_hub_dataset
from unreel.curation.recipe import CurationRecipe, parse_curation_recipe, read_curation_recipe
from unreel.curation.segment import GIVE_LICENCE, NO_LICENCE
from unreel.curation.segment_table import CurationState
from unreel.curation.step_execution import CurationContext
from unreel.engine.run import ALL_FAILURES, ENGINES
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import open_media_reader, require_sandbox_protection


def _open_curation_run(
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
) -> CurationRecipeJob:
    resolved = read_curation_recipe(recipe, changes)
    context = _build_curation_context(resolved, out=out, engine=engine, trusted=trusted)
    context = replace(context, access=replace(context.access, outside=outside))
    if engine == "ray":
        context = replace(context, engine=ENGINES.load(engine)(workers=workers))
    if retry_failed:
        context = replace(context, retry_failed=ALL_FAILURES)
    return CurationRecipeJob(
        recipe=resolved, root=recipe.absolute().parent, context=context, accept_leak=accept_leak
    )


def _build_curation_context(
    recipe: CurationRecipe, *, out: str | None, engine: str, trusted: bool
) -> CurationContext:
    limit_malloc_arenas()
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=trusted)
    return open_curation_context(
        recipe, out, build_clip_access_settings(settings, trusted=trusted), engine=engine
    )


def audit_benchmark(
    values: Mapping[str, Any], *, out: str | None, engine: str, trusted: bool
) -> CurationState:
    """Run the curation recipe `values` up to the step `audit`, and return its state with the result."""
    recipe = parse_curation_recipe(values)
    context = _build_curation_context(recipe, out=out, engine=engine, trusted=trusted)
    return _run_curation_with_progress(
        CurationRecipeJob(recipe=recipe, root=Path.cwd(), context=context), until="audit"
    )


def forecast_curation_recipe_file(
    recipe: Path, changes: Sequence[str], *, outside: bool
) -> CurationForecast:
    """Return the forecast of a curation recipe file: its clips, labels, licences, steps and splits."""
    resolved = read_curation_recipe(recipe, changes)
    access = replace(build_clip_access_settings(read_environment_settings()), outside=outside)
    return forecast_curation(resolved, root=recipe.absolute().parent, access=access)


def write_contact_sheet(
    folder: Path, *, out: Path | None, most: int, seed: int, roots: tuple[Path, ...], trusted: bool
) -> WrittenContactSheet:
    """Write a page with pictures of the curated clips in `folder`."""
    settings = ContactSheetSettings(most=most, seed=seed, roots=roots)
    with open_media_reader(read_environment_settings(), trusted=trusted) as reader:
        return write_contact_sheet_page(folder, settings=settings, reader=reader, out=out)


def write_hub_upload_folder(
    folder: Path, *, out: Path | None, repo: str | None, leak: bool, no_licence: bool
) -> HubDatasetFolder:
    """Write the upload folder for the Hugging Face Hub from the frozen benchmark in `folder`."""
    accepted = AcceptedPublishingRisks(leak=leak, no_licence=no_licence)
    return write_hub_dataset(folder, accepted=accepted, out=out, repo=repo)


def run_curation_and_print(options: Mapping[str, Any], *, until: str | None, as_json: bool) -> None:
    """Run a curation up to the step `until` (`None`: all steps), print the result, and exit."""
    curation = _open_curation_run(**options)
    state = _run_curation_with_progress(curation, until=until)
    if as_json:
        print_json(
            {
                "out": curation.context.place.uri,
                "steps": state.steps,
                "clips": len(state.segments),
                "left_out": state.reasons,
                "audit": state.audit and state.audit.document,
                "frozen": state.frozen,
            }
        )
    else:
        print_message(
            f"steps: {', '.join(state.steps)}; working folder {curation.context.place.uri}"
        )
        for reason, n in state.reasons.items():
            print_message(f"  excluded: {n} {reason}")
        if state.lacks_licences:
            print_message(f"  {NO_LICENCE}: {GIVE_LICENCE}")
        print_message(f"{len(state.segments)} clips")
        if state.audit is not None:
            print_message(*state.audit.text.split("\n"))
        if _is_freeze_blocked(state):
            print_message(
                "not frozen: the labels leak. Fix it, for example by [normalise], or use --accept-leak"
            )
        if state.frozen is not None:
            sizes = ", ".join(f"{n} {split}" for split, n in state.frozen.clips.items())
            print_message(f"frozen: {sizes}; digest {state.frozen.digest[:16]}")
            uri = curation.context.place.uri
            print_message(
                f"next: unreel curate sheet {uri} to inspect it, publish {uri} to share it"
            )
            echo(state.frozen.place)
    sys.exit(1 if state.n_failed or _is_freeze_blocked(state) else 0)


def _run_curation_with_progress(curation: CurationRecipeJob, *, until: str | None) -> CurationState:
    planned = list_recipe_steps(curation.recipe)
    steps = planned[: planned.index(until) + 1] if until in planned else planned
    print_model_servers(
        (
            [curation.recipe.describe.model]
            if curation.recipe.describe and "describe" in steps
            else []
        ),
        curation.context.access.settings,
    )
    with ProgressMeter() as meter, add_resume_note_on_stop(curation.context.place.uri, meter):
        context = replace(curation.context, callbacks=meter.callbacks())
        return run_curation(replace(curation, context=context), until=until)


def _is_freeze_blocked(state: CurationState) -> bool:
    return "freeze" in state.steps and state.frozen is None
