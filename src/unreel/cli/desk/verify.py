"""`unreel desk verify`: check a custody bundle, a zip of evidence with a manifest of hashes."""

import sys
from pathlib import Path

import click

from unreel.cli.output import echo, json_option, print_json, print_message

_FILE = click.Path(path_type=Path, dir_okay=False)


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
