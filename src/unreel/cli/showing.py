"""Options for clip input: `--show`, `--box-space`."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from unreel.reviewers.parts import Showing

F = TypeVar("F", bound=Callable[..., Any])


def showing_options(command: F) -> F:
    """Add `--show` and `--box-space` to a command that asks models."""
    show = click.option(
        "--show",
        type=click.Choice(get_args(Showing)),
        help="Model input: single frames; the sampled frames as one video, for `unreel serve`; or the file.  [default: frames]",
    )
    space = click.option(
        "--box-space",
        metavar="SPACE",
        help="Coordinate space of a model's boxes, if its family is unknown: permille, unit, pixel, or resized MIN-MAX.",
    )
    return show(space(command))
