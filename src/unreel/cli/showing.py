"""How clips are put before a model, as it is typed: `--show`, `--box-space`."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from unreel.cli.shared_options import box_space_option
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
    return show(box_space_option(command))
