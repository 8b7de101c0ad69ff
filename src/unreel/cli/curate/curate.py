"""`unreel curate`: raw video to a frozen benchmark."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from unreel.cli.curate.init import check, init, settings
from unreel.cli.curate.publish import publish, sheet
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

_JOB: Final = "unreel.cli.curate.curate_job"
_EXTRA: Final = "curate"

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
