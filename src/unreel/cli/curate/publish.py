"""`unreel curate sheet` and `publish`: write a contact sheet or an upload folder of a benchmark."""

from pathlib import Path
from typing import Final

import click

from unreel.cli.output import echo, json_option, print_json, print_message, trusted_option
from unreel.core.registry import LazyImport

_EXTRA: Final = "curate"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the HTML page to write.  [default: contact-sheet.html next to the benchmark]",
)
@click.option(
    "--most",
    type=click.IntRange(1, 500),
    default=12,
    show_default=True,
    help="Maximum number of clips on the page for each split, label and reason for exclusion.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the choice of clips on the page.",
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Also show excluded clips that are stored outside FOLDER and the current folder.",
)
@trusted_option
@json_option
def sheet(  # noqa: PLR0913  one parameter for each option
    *,
    folder: Path,
    out: Path | None,
    most: int,
    seed: int,
    allow_outside: bool,
    trusted: bool,
    as_json: bool,
) -> None:
    """Write a page with pictures of the clips in FOLDER.

    Frozen clips are shown by split and label, excluded clips by reason. FOLDER is the working folder of a
    curation, or a frozen benchmark.
    """
    write = LazyImport("unreel.cli.curate.curate_job:write_contact_sheet", _EXTRA).load()
    roots = () if allow_outside else (Path.cwd(), folder)
    written = write(folder, out=out, most=most, seed=seed, roots=roots, trusted=trusted)
    if as_json:
        print_json(written)
        return
    unseen = f", {written.n_unseen} of them without a picture" if written.n_unseen else ""
    print_message(f"{written.n_frozen} clips frozen, {written.n_left_out} excluded")
    print_message(
        f"{written.n_shown} are shown, at most {most} of each group, by seed {seed}{unseen}"
    )
    echo(written.page)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New folder for the files to upload.  [default: the folder hub next to the benchmark]",
)
@click.option(
    "--repo",
    metavar="OWNER/NAME",
    help="Name of the data set on the Hugging Face Hub, for the printed upload commands.",
)
@click.option(
    "--accept-leak",
    is_flag=True,
    help="Continue even if the audit finds that file properties reveal the labels.",
)
@click.option("--accept-no-licence", is_flag=True, help="Include clips that have no licence.")
@json_option
def publish(
    *,
    folder: Path,
    out: Path | None,
    repo: str | None,
    accept_leak: bool,
    accept_no_licence: bool,
    as_json: bool,
) -> None:
    """Prepare a frozen benchmark for the Hugging Face Hub.

    FOLDER is the working folder of a curation, or a frozen benchmark. The upload commands are printed; nothing
    is uploaded or sent.
    """
    hub = LazyImport("unreel.cli.curate.curate_job:write_hub_upload_folder", _EXTRA).load()
    done = hub(folder, out=out, repo=repo, leak=accept_leak, no_licence=accept_no_licence)
    if as_json:
        print_json(done)
        return
    licences = ", ".join(f"{n} {licence}" for licence, n in done.licences.items())
    print_message(
        f"{done.folder}: {done.n_clips} clips, {done.size_bytes / 1e6:.1f} MB; licences: {licences}"
    )
    for remark in done.remarks:
        print_message(f"missing: {remark}")
    print_message("to upload it (pip install huggingface_hub), type:")
    echo(*done.commands)
