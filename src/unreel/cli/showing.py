"""How clips are put before a model, as it is typed: `--show`, `--box-space`."""

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
        help="Frames one by one; our frames as one video, for `unreel serve`; or the file itself.  "
        "[default: frames]",
    )
    space = click.option(
        "--box-space",
        metavar="SPACE",
        help="What a model's boxes count in, where its family does not tell: permille, unit, pixel, or "
        "resized MIN-MAX.",
    )
    return show(space(command))
