"""Folder for a dataset hub, written from a frozen benchmark after all checksums were verified."""

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unreel.benchmarks.entry import BenchmarkLayout, Rejected
from unreel.benchmarks.folder_layout import is_path_inside
from unreel.benchmarks.loader import open_benchmark
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name, read_clip_id, require_relative_path
from unreel.core.table_formats import build_markdown_table
from unreel.curation.freeze.data_card import format_citation_cff, list_missing_citation_keys
from unreel.curation.freeze.step import (
    AUDIT,
    CARD,
    CHECKSUMS,
    find_frozen_benchmark,
    read_frozen_recipe,
    require_empty_folder,
)
from unreel.curation.recipe import SPLITS, FreezeRecipeSection

LICENCES = "LICENSE.md"
UNSTATED = "not stated"
_CREATIVE = ("by", "by-sa", "by-nc", "by-nc-sa", "by-nd", "by-nc-nd")
_KNOWN = frozenset(
    {
        *(f"cc-{kind}-{version}" for kind in _CREATIVE for version in ("2.0", "2.5", "3.0", "4.0")),
        *("cc0-1.0", "mit", "apache-2.0", "odc-by", "odbl", "pddl", "unlicense", "gpl-3.0"),
        *("bsd-2-clause", "bsd-3-clause", "cdla-permissive-1.0", "cdla-permissive-2.0"),
        *("cdla-sharing-1.0", "c-uda", "etalab-2.0", "gfdl"),
    }
)
"""Licence identifiers that Hugging Face accepts."""
_SAME = {"cc0": "cc0-1.0", "cc-0": "cc0-1.0", "apache": "apache-2.0"}

_OWN = (
    "Every clip keeps its own licence: the column `licence` of each manifest names it, and the column `source` "
    "contains the origin of the clip."
)

Tally = Mapping[tuple[str, str], int]
"""Number of clips by licence and source."""


def find_hub_licence_id(licence: str) -> str | None:
    """Return the hub's identifier of the licence; `None` if the hub does not know the licence."""
    word = re.sub(r"[\s_]+", "-", licence.strip().lower())
    word = _SAME.get(word, word)
    return word if word in _KNOWN else None


def format_licence_header(tally: Tally) -> list[str]:
    """Return the YAML lines about the licence in the header of a hub's dataset card."""
    licences = sorted({licence for licence, _ in tally})
    known = [find_hub_licence_id(licence) for licence in licences]
    if all(known):
        names = sorted({name for name in known if name})
        return (
            [f"license: {names[0]}"]
            if len(names) == 1
            else ["license:", *map("- {}".format, names)]
        )
    name = make_safe_file_name(licences[0]).lower() if len(licences) == 1 else "mixed"
    return [
        "license: other",
        f"license_name: {json.dumps(name, ensure_ascii=False)}",
        f"license_link: {LICENCES}",
    ]


def format_licence_file(name: str, tally: Tally) -> str:
    """Return the text of the licence file of a dataset: number of clips for each licence and source."""
    rows = [(licence, source, n) for (licence, source), n in sorted(tally.items())]
    table = build_markdown_table(("licence", "source", "clips"), rows)
    return f"# Licences of {' '.join(name.split())}\n\n{_OWN}\n\n{table}\n"


HUB = "hub"
CITATION = "CITATION.cff"
_MAX_BYTES = 256 << 20
"""Maximum size in bytes of a file that is read: checksums of about two million files."""
_FREEZE_AGAIN = "Freeze the benchmark again with `unreel curate run`"
_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
_HUB_SPLITS = {"train": "train", "val": "validation", "test": "test"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HubDatasetFolder:
    """Result of writing a folder for a dataset hub: size, licences, remarks and upload commands."""

    folder: Path
    n_clips: int
    size_bytes: int
    licences: Mapping[str, int]
    remarks: tuple[str, ...]
    """Missing information, such as a citation or an audit."""
    commands: tuple[str, ...]


def write_hub_dataset(
    folder: Path,
    *,
    accept_leak: bool = False,
    accept_no_licence: bool = False,
    out: Path | None,
    repo: str | None,
) -> HubDatasetFolder:
    """Write a folder for a dataset hub from the frozen benchmark in `folder`; upload nothing.

    The folder is `out`; by default it is next to the benchmark.
    """
    benchmark = find_frozen_benchmark(folder)
    target = out or benchmark.absolute().parent / HUB
    recipe = read_frozen_recipe(benchmark)
    frozen = recipe.freeze or FreezeRecipeSection()
    if frozen.in_place:
        raise InvalidSettingError(
            "publish",
            "the benchmark refers to media in other folders",
            'Freeze it with media = "copy" under [freeze]',
        )
    try:
        audit = parse_json_object(read_limited_bytes(benchmark / AUDIT, most=_MAX_BYTES))
    except InvalidValueError as error:
        raise UnreadableSourceError(str(benchmark / AUDIT), str(error), _FREEZE_AGAIN) from error
    if audit.get("finding") == "leaks" and not accept_leak:
        raise InvalidSettingError(
            "publish",
            "the audit found that the labels leak",
            f"Fix it and freeze again (see {CARD}), or publish it anyway with --accept-leak",
        )
    tally: Counter[tuple[str, str]] = Counter()
    licences: Counter[str] = Counter()
    for row in open_benchmark(benchmark, BenchmarkLayout.VIDEO_FOLDER):
        if isinstance(row, Rejected):
            raise UnreadableSourceError(str(benchmark), str(row), _FREEZE_AGAIN)
        tally[row.licence or UNSTATED, row.source] += 1
        licences[row.licence or UNSTATED] += 1
    if licences[UNSTATED] and not accept_no_licence:
        raise InvalidSettingError(
            "publish",
            f"{licences[UNSTATED]} clips have no licence",
            "Name it in the recipe (source.licence) and freeze again, or publish them anyway "
            "with --accept-no-licence",
        )
    licences = +licences
    require_empty_folder(target, "--out")
    sums = _verify_checksums(benchmark)
    counts = Counter(name.partition("/")[0] for name in sums if "/media/" in name)
    n_clips = sum(tally.values())
    texts = {
        CARD: _format_hub_card(
            benchmark, recipe.name, tally, [split for split in SPLITS if counts[split]]
        ),
        LICENCES: format_licence_file(recipe.name, tally),
        CITATION: format_citation_cff(recipe.name, frozen.version, frozen.citation),
    }
    size_bytes = _write_dataset_folder(benchmark, target, texts, sums)
    missing = list_missing_citation_keys(frozen.citation)
    remarks = [f"[freeze.citation] names no {', no '.join(missing)}"] if missing else []
    remarks += (
        ["the benchmark was not audited: add [audit] to the recipe"]
        if "finding" not in audit
        else []
    )
    name = repo or f"OWNER/{make_safe_file_name(recipe.name)}"
    return HubDatasetFolder(
        folder=target,
        n_clips=n_clips,
        size_bytes=size_bytes,
        licences=dict(licences),
        remarks=tuple(remarks),
        commands=(
            "hf auth login",
            f"hf upload {shlex.quote(name)} {shlex.quote(str(target))} . --repo-type dataset --private",
        ),
    )


def _verify_checksums(benchmark: Path) -> dict[str, str]:
    """Verify the checksum of every file of the benchmark, and return the checksums by file name."""
    sums: dict[str, str] = {}
    text = read_limited_bytes(benchmark / CHECKSUMS, most=_MAX_BYTES).decode(errors="replace")
    for line in text.splitlines():
        value, _, name = line.partition("  ")
        sums[require_relative_path(name)] = read_clip_id(value, CHECKSUMS)
    for name, value in sums.items():
        path = benchmark / name
        regular = is_path_inside(path, benchmark) and path.is_file() and not path.is_symlink()
        if not regular or compute_clip_id(path) != value:
            raise UnreadableSourceError(
                str(path), "changed since it was frozen", "Freeze again with `unreel curate run`"
            )
    return sums


def _format_hub_card(
    benchmark: Path, name: str, tally: Mapping[tuple[str, str], int], splits: list[str]
) -> str:
    text = read_limited_bytes(benchmark / CARD, most=_MAX_BYTES).decode()
    body = text.partition("\n---\n")[2] if text.startswith("---\n") else text
    n_clips = sum(tally.values())
    bounds = [10 ** (3 + index) for index in range(len(_SIZES))]
    index = sum(n_clips >= bound for bound in bounds)
    size = f"{_SIZES[index - 1]}<n<{_SIZES[index]}" if 0 < index < len(_SIZES) else ""
    size = size or (f"n>{_SIZES[-1]}" if index else f"n<{_SIZES[0]}")
    lines = [
        f"pretty_name: {json.dumps(name, ensure_ascii=False)}",
        *format_licence_header(tally),
        "task_categories:",
        "- video-classification",
        "size_categories:",
        f"- {size}",
        "tags:",
        *("- video", "- ai-generated", "- unreel"),
        "configs:",
        "- config_name: default",
        "  data_files:",
    ]
    for split in splits:
        lines += [f"  - split: {_HUB_SPLITS[split]}", "    path:"]
        lines += [f"    - {split}/metadata.parquet", f"    - {split}/media/**"]
    header = "\n".join(["---", *lines, "---"])
    return f"{header}\n{body}"


def _write_dataset_folder(
    benchmark: Path, target: Path, texts: Mapping[str, str | None], sums: Mapping[str, str]
) -> int:
    """Write the files of the dataset folder, checksums last, and return their total size in bytes."""
    folder = OutputDirectory(target, published=True)
    checksums = {name: value for name, value in sums.items() if name not in texts}
    for name in checksums:
        if not folder.hard_link(benchmark / name, name):
            folder.copy(benchmark / name, name)
    size_bytes = sum((benchmark / name).stat().st_size for name in checksums)
    for name, text in texts.items():
        if text is not None:
            data = text.encode()
            folder.write(name, data)
            checksums[name] = hashlib.sha256(data).hexdigest()
            size_bytes += len(data)
    lines = "".join(f"{checksums[name]}  {name}\n" for name in sorted(checksums))
    folder.write(CHECKSUMS, lines.encode())
    return size_bytes + len(lines)
