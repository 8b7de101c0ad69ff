"""`unreel curate`: raw video to a frozen, published benchmark."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unreel.cli.options import allow_outside_option, engine_option
from unreel.cli.output import (
    echo,
    json_option,
    print_json,
    print_message,
    print_table,
    trusted_option,
)
from unreel.core.registry import LazyImport
from unreel.core.safe_names import make_safe_file_name
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Category, Trace

if TYPE_CHECKING:
    from unreel.curation.curation_run import CurationForecast

_EXTRA = "curate"
_JOB = "unreel.cli.curate.curate_job"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the HTML page to write.  [default: contact-sheet.html next to the benchmark]",
)
@click.option(
    "--most",
    type=click.IntRange(1, 500),
    default=12,
    show_default=True,
    help="Maximum number of clips on the page for each split, label and reason for exclusion.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the choice of clips on the page.",
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Also show excluded clips that are stored outside FOLDER and the current folder.",
)
@trusted_option
@json_option
def sheet(
    *,
    folder: Path,
    out: Path | None,
    most: int,
    seed: int,
    allow_outside: bool,
    trusted: bool,
    as_json: bool,
) -> None:
    """Write a page with pictures of the clips in FOLDER.

    Frozen clips are shown by split and label, excluded clips by reason. FOLDER is the working folder of a
    curation, or a frozen benchmark.
    """
    write = LazyImport("unreel.cli.curate.curate_job:write_contact_sheet", _EXTRA).load()
    roots = () if allow_outside else (Path.cwd(), folder)
    written = write(folder, out=out, most=most, seed=seed, roots=roots, trusted=trusted)
    if as_json:
        print_json(written)
        return
    unseen = f", {written.n_unseen} of them without a picture" if written.n_unseen else ""
    print_message(f"{written.n_frozen} clips frozen, {written.n_left_out} excluded")
    print_message(
        f"{written.n_shown} are shown, at most {most} of each group, by seed {seed}{unseen}"
    )
    echo(written.page)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New folder for the files to upload.  [default: the folder hub next to the benchmark]",
)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Name of the data set on the Hugging Face Hub, for the printed upload commands.",
)
@click.option(
    "--accept-leak",
    is_flag=True,
    help="Continue even if the audit finds that file properties reveal the labels.",
)
@click.option("--accept-no-licence", is_flag=True, help="Include clips that have no licence.")
@json_option
def publish(
    *,
    folder: Path,
    out: Path | None,
    repo: str | None,
    accept_leak: bool,
    accept_no_licence: bool,
    as_json: bool,
) -> None:
    """Prepare a frozen benchmark for the Hugging Face Hub.

    FOLDER is the working folder of a curation, or a frozen benchmark. The upload commands are printed; nothing
    is uploaded or sent.
    """
    hub = LazyImport("unreel.cli.curate.curate_job:write_hub_upload_folder", _EXTRA).load()
    done = hub(folder, out=out, repo=repo, leak=accept_leak, no_licence=accept_no_licence)
    if as_json:
        print_json(done)
        return
    licences = ", ".join(f"{n} {licence}" for licence, n in done.licences.items())
    print_message(
        f"{done.folder}: {done.n_clips} clips, {done.size_bytes / 1e6:.1f} MB; licences: {licences}"
    )
    for remark in done.remarks:
        print_message(f"missing: {remark}")
    print_message("to upload it (pip install huggingface_hub), type:")
    echo(*done.commands)


_RECIPE = "curate.toml"
_SAMPLE = "sample"


@click.command()
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
    if sample:
        _write_sample_recipe(folder or Path(_SAMPLE), out=out, as_json=as_json)
        return
    recipe = out or Path(_RECIPE)
    guess = LazyImport("unreel.curation.recipe_template:write_folder_recipe", _EXTRA)(
        folder or Path(), recipe=recipe
    )
    if as_json:
        print_json({"recipe": str(recipe), **asdict(guess)})
        return
    for question in guess.open_questions:
        print_message(f"to decide: {question}")
    _print_next_commands(recipe)
    echo(recipe)


def _write_sample_recipe(folder: Path, *, out: Path | None, as_json: bool) -> None:
    if out is not None:
        raise click.UsageError(
            "--out goes without --sample: the recipe of a sample is in its folder."
        )
    recipe, n_clips = LazyImport("unreel.curation.recipe_template:write_sample_curation", _EXTRA)(
        folder
    )
    if as_json:
        print_json({"recipe": str(recipe), "clips": n_clips})
        return
    print_message(f"wrote {n_clips} clips to {folder}; three of them are meant to be excluded")
    _print_next_commands(recipe)
    echo(recipe)


def _print_next_commands(recipe: Path) -> None:
    print_message(f"next: unreel curate check {recipe}, then unreel curate run {recipe}")


@click.command()
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Value that replaces a setting of the recipe, for example normalise.width=640. Repeatable.",
)
@allow_outside_option
@json_option
def check(*, recipe: Path, changes: tuple[str, ...], outside: bool, as_json: bool) -> None:
    """Print the clips, labels, licences, steps and splits of RECIPE.

    Opens no clip, contacts no model or store, and writes nothing. Exits with status 2 if the recipe cannot run.
    """
    checked = LazyImport("unreel.cli.curate.curate_job:forecast_curation_recipe_file", _EXTRA)(
        recipe, changes, outside=outside
    )
    if as_json:
        print_json({**asdict(checked), "can_run": not checked.problems})
    else:
        _print_recipe_forecast(checked, recipe)
    sys.exit(2 if checked.problems else 0)


def _print_recipe_forecast(forecast: "CurationForecast", recipe: Path) -> None:
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


@click.command()
@click.argument("section", required=False)
@json_option
def settings(*, section: str | None, as_json: bool) -> None:
    """List the settings of a recipe with type, unit and default.

    With SECTION, only the settings of that section are listed.
    """
    sections = LazyImport("unreel.curation.recipe_template:find_recipe_sections", _EXTRA)(section)
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


F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def curate() -> None:
    """Turn raw video into a frozen, audited benchmark with one recipe."""


for _command in (init, check, settings, sheet, publish):
    curate.add_command(_command)


def curation_options(command: F) -> F:
    """Add the options of commands that run steps of a curation recipe to a command."""
    options = (
        click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        click.option(
            "--out",
            help="Working folder or s3:// prefix of the curation.  [default: curations/NAME]",
        ),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="SECTION.KEY=VALUE",
            help="Value that replaces a setting of the recipe, for example normalise.width=640. Repeatable.",
        ),
        engine_option,
        click.option(
            "--workers",
            type=click.IntRange(1),
            help="Number of processes per step. Only for --engine ray.  [default: as many as the cluster can run]",
        ),
        click.option(
            "--accept-leak",
            is_flag=True,
            help="Continue even if the audit finds that file properties reveal the labels.",
        ),
        click.option(
            "--retry-failed", is_flag=True, help="Retry the clips that failed in earlier calls."
        ),
        allow_outside_option,
        trusted_option,
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@curate.command()
@curation_options
def run(*, as_json: bool, **options: Any) -> None:
    """Run every step of RECIPE, from raw files to the frozen benchmark.

    A second call continues where the first one stopped, also after kill -9.
    """
    take = LazyImport(f"{_JOB}:run_curation_and_print", _EXTRA).load()
    take(options, until=None, as_json=as_json)


@curate.command()
@click.argument("name")
@curation_options
def step(*, name: str, as_json: bool, **options: Any) -> None:
    """Run the steps of RECIPE up to and including NAME."""
    take = LazyImport(f"{_JOB}:run_curation_and_print", _EXTRA).load()
    take(options, until=name, as_json=as_json)


@curate.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--normalise", is_flag=True, help="Re-encode all clips in one format before the audit."
)
@click.option(
    "--texts/--no-texts",
    default=True,
    show_default=True,
    help="Read the visible text in the clips and include it in the audit, or skip it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed for the audit.")
@click.option("--out", help="Working folder of the audit.  [default: curations/audit-NAME]")
@engine_option
@trusted_option
@json_option
def audit(
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
    """Test whether file properties reveal the labels of BENCHMARK.

    Exits with status 1 if they do.
    """
    audit_benchmark = LazyImport(f"{_JOB}:audit_benchmark", _EXTRA).load()
    values = {
        "name": f"audit-{benchmark.name}",
        "seed": seed,
        "require_licence": False,  # nothing is published here
        "source": {"path": str(benchmark.absolute())},
        "audit": {"texts": texts},
    }
    values |= {"normalise": {}} if normalise else {}
    state = audit_benchmark(values, out=out, engine=engine, trusted=trusted)
    if state.audit is not None:
        if as_json:
            print_json(state.audit.document)
        else:
            echo(*state.audit.text.split("\n"))
    for reason, n in state.reasons.items():
        print_message(f"  excluded: {n} {reason}")
    sys.exit(1 if state.leaks else 0)


@curate.command()
@click.argument("clip", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--category",
    type=click.Choice([each.value for each in Category if each is not Category.OTHER]),
    required=True,
    help="Category of the injected trace (a visible fault).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Path of the video file to write.  [default: CLIP+CATEGORY.mp4]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the position and form of the injected trace.",
)
@click.option(
    "--strength",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.7,
    show_default=True,
    help="Strength of the injected trace; 1 is the strongest.",
)
@trusted_option
@json_option
def inject(
    *,
    clip: Path,
    category: str,
    out: Path | None,
    seed: int,
    strength: float,
    trusted: bool,
    as_json: bool,
) -> None:
    """Write a copy of CLIP with one injected trace.

    The ground truth of the trace is printed.
    """
    from unreel.core.settings import read_environment_settings
    from unreel.media.access import open_media_reader

    inject_clip = LazyImport(
        "unreel.curation.inject.clip_injection:inject_trace_into_clip", _EXTRA
    ).load()
    into = out or Path(f"{make_safe_file_name(clip.stem)}+{category}.mp4")
    with open_media_reader(read_environment_settings(), trusted=trusted) as reader:
        trace = inject_clip(
            clip,
            reader=reader,
            category=Category(category),
            seed=seed,
            into=into,
            strength=strength,
        )
    if not isinstance(trace, Trace):
        print_message(f"{clip}: {trace}")
        sys.exit(1)
    if as_json:
        print_json({"file": str(into), "trace": trace})
    else:
        span = trace.span
        echo(
            f"{into}: {span.start_us / MICROSECONDS:.3f} s to {span.end_us / MICROSECONDS:.3f} s, {category}"
        )
        echo(trace.explanation)


@curate.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@json_option
def diff(*, before: Path, after: Path, as_json: bool) -> None:
    """Print the differences between the benchmarks BEFORE and AFTER.

    Added, removed, renamed and changed clips are listed.
    """
    compare = LazyImport("unreel.curation.benchmark_diff:compare_benchmarks", _EXTRA).load()
    changes = compare(before, after)
    if as_json:
        print_json(changes)
        return
    rows = [{"clip": name, "change": "added", "before": "", "after": ""} for name in changes.added]
    rows += [
        {"clip": name, "change": "removed", "before": "", "after": ""} for name in changes.removed
    ]
    rows += [
        {"clip": new, "change": "renamed", "before": old, "after": new}
        for old, new in changes.renamed
    ]
    rows += [
        {
            "clip": difference.name,
            "change": difference.field,
            "before": difference.before,
            "after": difference.after,
        }
        for difference in changes.changed
    ]
    if rows:
        print_table(tuple(rows[0]), rows)
    print_message(f"{changes.n_same} clips are the same, {len(rows)} differences")
