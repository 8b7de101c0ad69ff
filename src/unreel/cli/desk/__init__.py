"""Commands of the desk: `desk` and `desk verify`."""

import sys
from pathlib import Path

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.output import echo, json_option, print_json, print_message, trusted_option
from unreel.core.registry import LazyImport, require_extra

_WORDS = {
    "verify": LazyCommand(
        LazyImport("unreel.cli.desk:verify"), "Check every byte of a custody bundle."
    )
}
_FILE = click.Path(path_type=Path, dir_okay=False)
_UNSIGNED_STATUS = 3
"""Exit status for a bundle that is intact and has no signature."""


@click.command(cls=LazyCommandGroup, words=_WORDS, invoke_without_command=True)
@click.option(
    "--config",
    type=_FILE,
    help="TOML file with the settings of the desk, such as its models. Without it, the page offers the models on this computer, and no other model is queried.",
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
def desk(
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
@click.option(
    "--authorities",
    type=_FILE,
    help="PEM file with the certificates of the accepted timestamp authorities.",
)
@click.option(
    "--original", type=_FILE, help="Video file that must be the original of a case in the bundle."
)
@json_option
def verify(
    *,
    bundle: Path,
    signers: Path | None,
    authorities: Path | None,
    original: Path | None,
    as_json: bool,
) -> None:
    """Check every byte of the custody bundle BUNDLE, its signature and its timestamp.

    The manifest, the log, the notes and the result must agree. With --signers, the bundle must be signed by
    one of the allowed signers; with --authorities, it must have a timestamp of one of the authorities. Exits with status 0 if the bundle is intact and signed, 1 if it is not
    intact, and 3 if it is intact, but not signed.
    """
    from unreel.desk.custody_bundle import verify_custody_bundle

    checked = verify_custody_bundle(bundle, signers, original=original, authorities=authorities)
    if as_json:
        print_json(checked)
    elif checked.is_intact:
        echo(f"{bundle}: intact, {checked.n_files} files. {checked.signature} {checked.timestamp}")
        for each in checked.originals:
            note = f" (not chained: the first {each.n_not_chained} lines of its log)"
            note = note if each.n_not_chained else ""
            echo(f"  original {each.sha256}  {each.name}{note}")
        if original is not None:
            echo(f"  {original} is an original of this bundle")
    else:
        print_message(*(f"{bundle}: {problem}" for problem in checked.problems))
    sys.exit(1 if not checked.is_intact else 0 if checked.is_signed else _UNSIGNED_STATUS)
