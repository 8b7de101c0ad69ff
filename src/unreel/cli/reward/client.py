"""`unreel reward client`: write the Python file with which a trainer calls the reward service."""

from importlib.resources import files
from pathlib import Path

import click

from unreel.cli.output import print_message
from unreel.core.output_files import OutputDirectory


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
