"""Options that several commands have, with one meaning and help text each: see also `columns`."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_MEDIA: Final = {
    "licensed": "copies of those whose licence allows it",
    "link": "links to the files",
    "copy": "copies",
    "none": "no clips",
}


def box_space_option(command: F) -> F:
    """Add `--box-space` to a command that reads boxes of a model."""
    return click.option(
        "--box-space",
        metavar="SPACE",
        help="Unit of a model's boxes: pixel, unit, permille or 'model-input WxH'; for a model that is asked, also "
        "'resized MIN-MAX'.",
    )(command)


def condition_option(*, multiple: bool) -> Callable[[F], F]:
    """Add `--condition` to a command that asks models; several arrive as `conditions`."""
    return click.option(
        "--condition",
        *(("conditions",) if multiple else ()),
        multiple=multiple,
        metavar="NAME=VALUE,...",
        help="Condition of the questions: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, "
        "prompt=VARIANT." + (" Repeat it to ask under several." if multiple else ""),
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
        help=f"Clips in the written folder, never re-encoded. {meanings}.",
    )
