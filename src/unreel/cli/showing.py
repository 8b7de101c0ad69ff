"""Options for clip input: `--show`, `--box-space`."""

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
        help="Model input: single frames; the sampled frames as one video, for `unreel serve`; or the file.  [default: frames]",
    )
    return show(box_space_option(command))
