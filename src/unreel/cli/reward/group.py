"""`unreel reward`: rewards of generated clips for trainers of video generators."""

from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
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
        LazyImport("unreel.cli.reward.client:client"), "Write the client file for a trainer."
    ),
    "watch": LazyCommand(
        LazyImport("unreel.cli.reward.watch:watch"), "Check a reward log for reward hacking."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def reward() -> None:
    """Score generated clips as a reward for training: 0 to 1 (1 = looks real), or a failure."""
