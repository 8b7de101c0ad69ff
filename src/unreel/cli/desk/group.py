"""`unreel desk`: a page where people check clips."""

from pathlib import Path
from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyGroup
from unreel.core.registry import LazyImport, require_extra

_WORDS: Final = {
    "verify": LazyCommand(
        LazyImport("unreel.cli.desk.verify:verify"), "Check every byte of a custody bundle."
    ),
}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=LazyGroup, words=_WORDS, invoke_without_command=True)
@click.option("--config", type=_FILE, help="Settings: a file desk.toml.")
@click.option(
    "--cases",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the cases.  [default: desk-cases]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Host to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8070, show_default=True, help="Port; 0: any."
)
@click.option("--no-browser", is_flag=True, help="Print the link without opening a browser.")
@click.option(
    "--trusted",
    is_flag=True,
    help="Decode files in this process, without the sandbox. Use it only for your own clips.",
)
@click.pass_context
def desk(  # noqa: PLR0913  one parameter for each option
    context: click.Context,
    *,
    config: Path | None,
    cases: Path | None,
    host: str,
    port: int,
    no_browser: bool,
    trusted: bool,
) -> None:
    """Open a page where people drop clips and get the evidence.

    Runs until Ctrl-C or SIGTERM. Cases stay in their folder, and the next start takes up unfinished
    ones; no stored answer is asked for again.
    """
    if context.invoked_subcommand is not None:
        return
    require_extra(("fastapi", "uvicorn", "lance"), "desk")
    from unreel.cli.desk.desk_job import run_desk

    run_desk(
        config, cases=cases, host=host, port=port, opens_browser=not no_browser, trusted=trusted
    )
