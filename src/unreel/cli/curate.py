"""`unreel curate`: raw video to a frozen, published benchmark."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api import curate as api
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.cli.process_signals import add_resume_note_on_stop, limit_malloc_arenas
from unreel.cli.progress import ProgressMeter
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace

if TYPE_CHECKING:
    from unreel.curation.curation_run import CurationForecast, CurationRecipeJob
    from unreel.curation.segment import CurationState

_RECIPE = Path("curate.toml")


@click.group(cls=LazyCommandGroup)
def curate() -> None:
    """Turn raw video into a frozen, audited benchmark with one recipe."""


@curate.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=f"Recipe file to write. An existing file is never replaced.  [default: {_RECIPE}]",
)
@click.option(
    "--sample", is_flag=True, help="Create a few synthetic clips and their recipe in FOLDER."
)
@json_option
def init(*, folder: Path | None, out: Path | None, sample: bool, as_json: bool) -> None:
    """Write a commented recipe for the clips in FOLDER.

    FOLDER is a folder of videos, a benchmark or a table of clips; by default the current folder. The recipe
    lists every setting with its default. With --sample, FOLDER (default `sample`) gets a few synthetic clips,
    to try a curation offline.
    """
    if sample and out is not None:
        raise click.UsageError(
            "--out goes without --sample: the recipe of a sample is in its folder."
        )
    if sample:
        recipe, n_clips = api.write_sample(folder or Path("sample"))
        document: dict[str, object] = {"clips": n_clips}
        messages = [
            f"wrote {n_clips} clips to {recipe.parent}; three of them are meant to be excluded"
        ]
    else:
        recipe = out or _RECIPE
        guess = api.write_folder_recipe(folder or Path(), recipe)
        document = asdict(guess)
        messages = [f"to decide: {question}" for question in guess.open_questions]
    if as_json:
        print_json({"recipe": str(recipe), **document})
        return
    print_message(*messages, f"next: unreel curate check {recipe}, then unreel curate run {recipe}")
    echo(recipe)


@curate.command()
@settings_options(api.RecipeSettings)
@json_option
def check(settings: api.RecipeSettings, *, as_json: bool) -> None:
    """Print the clips, labels, licences, steps and splits of RECIPE.

    Opens no clip, contacts no model or store, and writes nothing. Exits with status 2 if the recipe cannot run.
    """
    forecast = api.forecast_curation(settings)
    if as_json:
        print_json({**asdict(forecast), "can_run": not forecast.problems})
    else:
        _print_forecast(forecast, settings.recipe)
    sys.exit(2 if forecast.problems else 0)


def _print_forecast(forecast: "CurationForecast", recipe: Path) -> None:
    print_table(
        ("source", "real", "generated", "left_out"),
        [
            {
                "source": count.path,
                "real": count.labels.get("real", "?"),
                "generated": count.labels.get("generated", "?"),
                "left_out": ", ".join(f"{n} {why}" for why, n in count.left_out.items()) or "-",
            }
            for count in forecast.sources
        ],
    )
    print_message(
        f"up to {forecast.n_clips} clips, about {forecast.n_injected} injected, "
        f"{forecast.n_questions} questions to a model; steps: {', '.join(forecast.steps)}"
    )
    for split, size in forecast.splits.items():
        echo(f"{split}: {size}, if nothing more is excluded")
    for count in forecast.sources:
        print_message(*(f"left out: {example}" for example in count.examples))
        print_message(*([f"{count.path}: {count.remark}"] if count.remark else []))
    for problem in forecast.problems:
        print_message(f"could not run: {problem}")
    if not forecast.problems:
        print_message(f"next: unreel curate run {recipe}")


@curate.command()
@click.argument("section", required=False)
@json_option
def settings(*, section: str | None, as_json: bool) -> None:
    """List the settings of a recipe with type, unit and default.

    With SECTION, only the settings of that section are listed.
    """
    sections = api.list_recipe_sections(section)
    if as_json:
        print_json(sections)
        return
    for part in sections:
        heading = f"[[{part.name}]]" if part.many else f"[{part.name}]"
        echo(f"{heading if part.name else 'above all sections'}: {part.about}")
        rows = [
            {
                "key": key.key,
                "type": key.kind,
                "unit": key.unit,
                "default": "needed" if key.default is None else key.default or "none",
                "meaning": key.meaning,
            }
            for key in part.keys
        ]
        if rows:
            print_table(tuple(rows[0]), rows)


@curate.command()
@settings_options(api.SheetSettings)
@json_option
def sheet(settings: api.SheetSettings, *, as_json: bool) -> None:
    """Write a page with pictures of the clips in FOLDER.

    Frozen clips are shown by split and label, excluded clips by reason. FOLDER is the working folder of a
    curation, or a frozen benchmark.
    """
    written = api.write_contact_sheet(settings)
    if as_json:
        print_json(written)
        return
    unseen = f", {written.n_unseen} of them without a picture" if written.n_unseen else ""
    print_message(
        f"{written.n_frozen} clips frozen, {written.n_left_out} excluded",
        f"{written.n_shown} are shown, at most {settings.max_shown} of each group, "
        f"by seed {settings.seed}{unseen}",
    )
    echo(written.page)


@curate.command()
@settings_options(api.PublishSettings)
@json_option
def publish(settings: api.PublishSettings, *, as_json: bool) -> None:
    """Prepare a frozen benchmark for the Hugging Face Hub.

    FOLDER is the working folder of a curation, or a frozen benchmark. The upload commands are printed; nothing
    is uploaded or sent.
    """
    done = api.write_hub_folder(settings)
    if as_json:
        print_json(done)
        return
    licences = ", ".join(f"{n} {licence}" for licence, n in done.licences.items())
    print_message(
        f"{done.folder}: {done.n_clips} clips, {done.size_bytes / 1e6:.1f} MB; licences: {licences}"
    )
    print_message(*(f"missing: {remark}" for remark in done.remarks))
    print_message("to upload it (pip install huggingface_hub), type:")
    echo(*done.commands)


@curate.command()
@settings_options(api.CurationSettings)
@json_option
def run(settings: api.CurationSettings, *, as_json: bool) -> None:
    """Run every step of RECIPE, from raw files to the frozen benchmark.

    A second call continues where the first one stopped, also after kill -9.
    """
    _run_steps(settings, until=None, as_json=as_json)


@curate.command()
@click.argument("name")
@settings_options(api.CurationSettings)
@json_option
def step(settings: api.CurationSettings, *, name: str, as_json: bool) -> None:
    """Run the steps of RECIPE up to and including NAME."""
    _run_steps(settings, until=name, as_json=as_json)


def _run_steps(settings: api.CurationSettings, *, until: str | None, as_json: bool) -> None:
    limit_malloc_arenas()
    curation = api.open_curation(settings)
    state = _run_with_progress(curation, until=until)
    uri = curation.context.place.uri
    is_blocked = "freeze" in state.steps and state.frozen is None
    if as_json:
        print_json(
            {
                "out": uri,
                "steps": state.steps,
                "clips": len(state.segments),
                "left_out": state.reasons,
                "audit": state.audit and state.audit.document,
                "frozen": state.frozen,
            }
        )
    else:
        print_message(f"steps: {', '.join(state.steps)}; working folder {uri}")
        print_message(*(f"  excluded: {n} {reason}" for reason, n in state.reasons.items()))
        if state.lacks_licences:
            print_message(f"  {api.describe_missing_licences()}")
        print_message(f"{len(state.segments)} clips")
        if state.audit is not None:
            print_message(*state.audit.text.split("\n"))
        if is_blocked:
            print_message(
                "not frozen: the labels leak. Fix it, for example by [normalise], or use --accept-leak"
            )
        if state.frozen is not None:
            sizes = ", ".join(f"{n} {split}" for split, n in state.frozen.clips.items())
            print_message(f"frozen: {sizes}; digest {state.frozen.digest[:16]}")
            print_message(
                f"next: unreel curate sheet {uri} to inspect it, publish {uri} to share it"
            )
            echo(state.frozen.place)
    sys.exit(1 if state.n_failed or is_blocked else 0)


def _run_with_progress(curation: "CurationRecipeJob", *, until: str | None) -> "CurationState":
    print_message(*api.describe_contacts(curation, until=until))
    with ProgressMeter() as meter, add_resume_note_on_stop(curation.context.place.uri, meter):
        return api.run_curation(curation, until=until, callbacks=meter.callbacks())


@curate.command()
@settings_options(api.AuditSettings)
@json_option
def audit(settings: api.AuditSettings, *, as_json: bool) -> None:
    """Test whether file properties reveal the labels of BENCHMARK.

    Exits with status 1 if they do.
    """
    limit_malloc_arenas()
    state = _run_with_progress(api.open_audit(settings), until="audit")
    if state.audit is not None and as_json:
        print_json(state.audit.document)
    elif state.audit is not None:
        echo(*state.audit.text.split("\n"))
    print_message(*(f"  excluded: {n} {reason}" for reason, n in state.reasons.items()))
    sys.exit(1 if state.leaks else 0)


@curate.command()
@settings_options(api.InjectSettings)
@json_option
def inject(settings: api.InjectSettings, *, as_json: bool) -> None:
    """Write a copy of CLIP with one injected trace.

    The ground truth of the trace is printed.
    """
    file, trace = api.inject_trace(settings)
    if not isinstance(trace, Trace):
        print_message(f"{settings.clip}: {trace}")
        sys.exit(1)
    if as_json:
        print_json({"file": str(file), "trace": trace})
        return
    start_s, end_s = trace.span.start_us / MICROSECONDS, trace.span.end_us / MICROSECONDS
    echo(f"{file}: {start_s:.3f} s to {end_s:.3f} s, {settings.category}", trace.explanation)


@curate.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@json_option
def diff(*, before: Path, after: Path, as_json: bool) -> None:
    """Print the differences between the benchmarks BEFORE and AFTER.

    Added, removed, renamed and changed clips are listed.
    """
    changes = api.compare_benchmarks(before, after)
    if as_json:
        print_json(changes)
        return
    cells = [
        *((name, "added", "", "") for name in changes.added),
        *((name, "removed", "", "") for name in changes.removed),
        *((new, "renamed", old, new) for old, new in changes.renamed),
        *((change.name, change.field, change.before, change.after) for change in changes.changed),
    ]
    columns = ("clip", "change", "before", "after")
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    if rows:
        print_table(columns, rows)
    print_message(f"{changes.n_same} clips are the same, {len(rows)} differences")
