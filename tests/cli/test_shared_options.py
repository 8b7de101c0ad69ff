"""An option of one name has one meaning in all commands."""

from collections.abc import Iterator

import click
import pytest

from unreel.cli.main import unreel

MEDIA = ["licensed", "link", "copy", "none"]


def walk(command: click.Command, path: str = "unreel") -> Iterator[tuple[str, click.Option]]:
    """Every option of every command, with the command's path."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, f"{path} {name}")
        return
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield path, parameter


OPTIONS = list(walk(unreel))


def named(name: str) -> dict[str, click.Option]:
    found = {path: option for path, option in OPTIONS if name in option.opts}
    assert len(found) > 1, f"{name} is in {len(found)} commands: it needs no test"
    return found


@pytest.mark.parametrize("name", ["--layout", "--box-space", "--condition"])
def test_an_option_has_one_type_and_one_help_text(name: str) -> None:
    told = {
        path: (
            option.type.to_info_dict(),
            option.metavar,
            str(option.help).removesuffix(" Repeatable: each condition is evaluated."),
        )
        for path, option in named(name).items()
    }
    first = next(iter(told.values()))
    assert {path: each for path, each in told.items() if each != first} == {}


def test_media_says_what_happens_to_clips_in_the_written_folder() -> None:
    for path, option in named("--media").items():
        assert isinstance(option.type, click.Choice), path
        assert set(option.type.choices) <= set(MEDIA), path
        assert str(option.help).startswith("How clips get into the output folder"), path
