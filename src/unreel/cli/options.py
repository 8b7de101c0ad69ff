"""Options of several commands, each with one meaning and one help text."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click

from unreel.benchmarks.entry import BenchmarkLayout
from unreel.core.errors import InvalidSettingError
from unreel.protocols.protocol import PROTOCOLS, Subject, get_protocol, list_protocol_names
from unreel.reviewers.message_parts import Showing

F = TypeVar("F", bound=Callable[..., Any])
LAYOUTS: Final = click.Choice([layout.value for layout in BenchmarkLayout])


def layout_option(command: F) -> F:
    """Add `--layout` to a command that reads a benchmark."""
    return click.option(
        "--layout",
        type=LAYOUTS,
        help="File layout of the benchmark; `unreel benchmarks` lists all layouts.  [default: detected]",
    )(command)


def column_map_option(command: F) -> F:
    """Add `--map`, which assigns table columns to fields, to a command; its value is called `mapping`."""
    return click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=COLUMN",
        help="Table column from which a field of the benchmark is read: `label=kind` reads the label of each clip from the column `kind`. Repeatable.",
    )(command)


def parse_column_mapping(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """Parse FIELD=COLUMN pairs into a mapping from field to column."""
    parts = {pair: pair.partition("=") for pair in pairs}
    for pair, (field, _, column) in parts.items():
        if not (field and column):
            option, remedy = "--map", "Write FIELD=COLUMN, for example label=kind"
            raise InvalidSettingError(option, f"cannot use {pair!r}", remedy)
    return {field: column for field, _, column in parts.values()}


def parse_condition_options(
    options: Sequence[str], *, nframe: int | None, fps: str | None
) -> list[Mapping[str, str]] | None:
    """Parse `--condition`, with sampling from `--nframe` or `--fps` by default; `None` without options."""
    if nframe is not None and fps is not None:
        option, remedy = "--nframe", "Give one of --nframe and --fps"
        raise InvalidSettingError(option, "cannot be combined with --fps", remedy)
    plan = f"uniform-{nframe}" if nframe else f"fps-{fps}" if fps else None
    short = {} if plan is None else {"sampling": plan}
    if not options:
        return [short] if short else None
    return [short | _parse_condition(text) for text in options]


def _parse_condition(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and value for name, _, value in parts):
        option, remedy = "--condition", "Write NAME=VALUE,NAME=VALUE, for example sampling=paper-8"
        raise InvalidSettingError(option, f"cannot use {text!r}", remedy)
    return {name: value for name, _, value in parts}


def allow_outside_option(command: F) -> F:
    """Add `--allow-outside` to a command that reads tables."""
    return click.option(
        "--allow-outside",
        "outside",
        is_flag=True,
        help="Allow tables of clips to name files outside the folder of the table. Use it only for tables that you trust.",
    )(command)


def weak_cage_option(command: F) -> F:
    """Add `--weak-cage` to a command that runs `command:` programs."""
    return click.option(
        "--weak-cage",
        is_flag=True,
        help="Run external programs (models named `command:NAME`) without the bubblewrap sandbox. They can then read all your files.",
    )(command)


def accept_changed_option(command: F) -> F:
    """Add `--accept-changed` to a command that reads a run and its benchmark."""
    return click.option(
        "--accept-changed",
        is_flag=True,
        help="Continue even if the benchmark or the recipe has changed since the run began.",
    )(command)


def run_benchmark_options(command: F) -> F:
    """Add `--benchmark`, `--accept-changed` and `--allow-outside` to a command that reads a run."""
    moved = click.option(
        "--benchmark",
        "moved_to",
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="New path of the benchmark of the runs, if it has been moved.",
    )
    return moved(accept_changed_option(allow_outside_option(command)))


class ProtocolParamType(click.Choice[str]):
    """Click parameter type for the name of a protocol; plugins are searched only if needed.

    Args:
        subject: Required subject of the protocol; any by default.
    """

    def __init__(self, subject: Subject | None = None) -> None:
        self._subject = subject
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the names of all protocols that the option accepts."""
        return list_protocol_names(self._subject)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        is_builtin = value in PROTOCOLS.entries
        if is_builtin and self._subject in {None, get_protocol(value).subject}:
            return value
        return super().convert(value, param, ctx)


_MEDIA: Final = {
    "licensed": "copies of the clips whose licence allows it",
    "link": "links to the files",
    "copy": "copies",
    "none": "no clips",
}


def box_space_option(command: F) -> F:
    """Add `--box-space`, the coordinate space of a model's boxes, to a command."""
    return click.option(
        "--box-space",
        metavar="SPACE",
        help="Coordinate space of the model's boxes: pixel, unit (0 to 1), permille (0 to 1000), 'model-input WxH' (pixels of the resized frame), or 'resized MIN-MAX' (the same, for a resize to between MIN and MAX pixels; only for new questions).",
    )(command)


def engine_option(command: F) -> F:
    """Add `--engine` to a command that runs a job over many clips."""
    return click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Execution engine. local: this process; ray: Ray Data (needs the extra `ray`).",
    )(command)


def frame_sampling_options(command: F) -> F:
    """Add `--nframe` and `--fps`, short forms of the condition `sampling`, to a command."""
    rate = click.option(
        "--fps",
        help="Number of frames per second that the model sees; short for --condition sampling=fps-F.",
    )
    return click.option(
        "--nframe",
        type=click.IntRange(1),
        help="Number of evenly spaced frames that the model sees; short for --condition sampling=uniform-N.",
    )(rate(command))


def condition_option(*, multiple: bool) -> Callable[[F], F]:
    """Return a decorator for `--condition`; with `multiple` it repeats and is called `conditions`."""
    return click.option(
        "--condition",
        *(("conditions",) if multiple else ()),
        multiple=multiple,
        metavar="NAME=VALUE,...",
        help="Input settings of the questions, separated by commas: sampling=PLAN, audio=on, watermark=removed, "
        "thinking=on|off, prompt=VARIANT."
        + (" Repeatable: each condition is evaluated." if multiple else ""),
    )


def media_option(*choices: str, name: str = "media") -> Callable[[F], F]:
    """Add `--media` to a command that writes a folder with clips; the first choice is the default."""
    meanings = "; ".join(f"{choice}: {_MEDIA[choice]}" for choice in choices)
    return click.option(
        "--media",
        name,
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=f"How clips get into the output folder; they are never re-encoded. {meanings}.",
    )


def model_input_options(command: F) -> F:
    """Add `--show` and `--box-space` to a command that asks models."""
    show = click.option(
        "--show",
        type=click.Choice(get_args(Showing)),
        help="Form of the model input. frames: single frames; video: the same frames as one video, for models behind `unreel serve`; clip: the complete file.  [default: frames]",
    )
    return show(box_space_option(command))
