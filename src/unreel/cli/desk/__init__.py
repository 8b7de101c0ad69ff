"""Commands of the desk: `desk` and `desk verify`."""

import sys
from pathlib import Path
from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.output import echo, json_option, print_json, print_message, trusted_option
from unreel.core.registry import LazyImport, require_extra

_WORDS: Final = {
    "verify": LazyCommand(
        LazyImport("unreel.cli.desk:verify"), "Check every byte of a custody bundle."
    ),
}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=LazyCommandGroup, words=_WORDS, invoke_without_command=True)
@click.option(
    "--config",
    type=_FILE,
    help="TOML file with the settings of the desk, such as its models. Without it, no model is queried.",
)
@click.option(
    "--cases",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the stored cases.  [default: desk-cases]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Network address on which the server listens. Addresses other than loopback require [proxy] in the file of --config.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8070,
    show_default=True,
    help="TCP port of the server. With 0, the system chooses a free port, and the command prints it.",
)
@click.option("--no-browser", is_flag=True, help="Print the link without opening a browser.")
@trusted_option
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
    """Open a page where people upload clips and check the evidence.

    Runs until Ctrl-C or SIGTERM. Cases are stored; the next start resumes unfinished cases and does not
    repeat questions that have an answer.
    """
    if context.invoked_subcommand is not None:
        return
    require_extra(("fastapi", "uvicorn", "lance"), "desk")
    from unreel.cli.desk.desk_job import serve_desk_application

    serve_desk_application(
        config, cases=cases, host=host, port=port, opens_browser=not no_browser, trusted=trusted
    )


@click.command()
@click.argument("bundle", type=_FILE)
@click.option(
    "--signers",
    type=_FILE,
    help="File with the public keys of the allowed signers, in the format of ssh-keygen.",
)
@json_option
def verify(*, bundle: Path, signers: Path | None, as_json: bool) -> None:
    """Check every byte of the custody bundle BUNDLE, and its signature.

    With --signers, the bundle must be signed by one of the allowed signers. Exits with status 1 if a file is
    missing or changed, or the signature is invalid.
    """
    from unreel.desk.custody_bundle import verify_custody_bundle

    checked = verify_custody_bundle(bundle, signers)
    if as_json:
        print_json(checked)
    elif checked.is_intact:
        echo(f"{bundle}: intact, {checked.n_files} files. {checked.signature}")
        echo(*(f"  original {each.sha256}  {each.name}" for each in checked.originals))
    else:
        print_message(*(f"{bundle}: {problem}" for problem in checked.problems))
    sys.exit(0 if checked.is_intact else 1)
