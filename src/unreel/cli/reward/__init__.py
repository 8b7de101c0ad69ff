"""`unreel reward`: rewards of generated clips for trainers of video generators."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.output import print_message
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import LazyImport

_WORDS: Final = {
    "serve": LazyCommand(
        LazyImport("unreel.cli.reward.serve:serve", "reward"), "Serve rewards over HTTP."
    ),
    "calibrate": LazyCommand(
        LazyImport("unreel.cli.reward.calibrate:calibrate"),
        "Calibrate rewards on the answers of a run.",
    ),
    "client": LazyCommand(
        LazyImport("unreel.cli.reward:client"), "Write the client file for a trainer."
    ),
    "watch": LazyCommand(
        LazyImport("unreel.cli.reward.watch:watch"), "Check a reward log for reward hacking."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def reward() -> None:
    """Score generated clips as a reward for training: 0 to 1 (1 = looks real), or a failure."""


@click.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the Python file to write, for example unreel_reward_client.py.",
)
def client(out: Path) -> None:
    """Write the client of the reward service as one file.

    The file needs only Python 3.9 and its standard library. Copy it into the environment of your trainer.
    """
    source = files("unreel.rewards.client") / "unreel_reward_client.py"
    target = out.absolute()
    OutputDirectory(target.parent, published=True).write(target.name, source.read_bytes())
    print_message(f"wrote {out}")
