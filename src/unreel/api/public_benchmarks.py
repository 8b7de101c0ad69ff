"""Public benchmarks by name: download, and their settings and published figures in an evaluation."""

import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from unreel.api.shared_settings import BenchmarkSettings
from unreel.catalogue.names import list_entry_names
from unreel.core.command_options import FOLDER, Option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.settings import read_environment_settings

if TYPE_CHECKING:
    from unreel.catalogue.download import DownloadPlan, DownloadRecord
    from unreel.catalogue.entries import CatalogueBenchmark
    from unreel.core.question import Condition


@dataclass(frozen=True, kw_only=True)
class GetSettings:
    """Settings of `plan_download`."""

    name: Annotated[str, Option(is_argument=True)]
    out: Annotated[Path | None, FOLDER] = None
    """Folder for the files. The commands find only the default folder by name.  [default: NAME in the folder of UNREEL_BENCHMARKS]"""
    parts: Annotated[tuple[str, ...], Option(name="--part", metavar="PATTERN")] = ()
    """Pattern of the paths of the clips and archives to download, for example '*/Real/*'. Tables are always downloaded. Repeatable.  [default: all]"""
    revision: Annotated[str | None, Option(metavar="COMMIT")] = None
    """Commit, branch or tag on the hub.  [default: that of an earlier call or of the catalogue, else the newest commit]"""


def plan_download(settings: GetSettings) -> "DownloadPlan":
    """List what a download of a public benchmark would fetch; nothing is written.

    Raises:
        InvalidSettingError: unreel does not download the benchmark.
        UnreadableSourceError: The hub has no such files, or gives no access to them.
        MachineError: The hub cannot be reached.
    """
    from unreel.catalogue.download import plan_download
    from unreel.catalogue.entries import get_benchmark

    entry = get_benchmark(settings.name)
    folder = settings.out or read_environment_settings().benchmarks_folder / entry.name
    return plan_download(entry, folder, revision=settings.revision, parts=settings.parts)


def run_download(
    plan: "DownloadPlan", on_bytes: Callable[[str, int], None], on_wait: Callable[[], None]
) -> "DownloadRecord":
    """Download the files of `plan`; a call after a kill continues where the earlier one ended."""
    from unreel.catalogue.download import run_download

    return run_download(plan, on_bytes=on_bytes, on_wait=on_wait)


def list_manual_steps(name: str) -> Sequence[str]:
    """Return the steps of a download by hand of a public benchmark; empty if unreel downloads it."""
    from unreel.catalogue.entries import get_benchmark

    entry = get_benchmark(name)
    if entry.download is not None:
        return ()
    places = [
        f"https://huggingface.co/datasets/{hub_id}" for hub_id in _get_value(entry.hub_ids) or ()
    ]
    elsewhere = _get_value(entry.elsewhere)
    found = " and ".join([*places, *([elsewhere] if elsewhere else [])])
    default = (
        f"Download the files from {found}" if found else "No public location is stated",
        "Bring them into a layout that `unreel benchmarks` lists",
        "Check the result with `unreel benchmarks check FOLDER`, and name it to `unreel eval`",
    )
    return entry.by_hand or default


def list_next_steps(plan: "DownloadPlan", *, is_default: bool) -> Sequence[str]:
    """Return the commands that use the files of a finished download."""
    entry, lines = plan.entry, []
    if entry.download is not None and entry.download.fetch_from is not None:
        lines.append(
            f"The clips stay at URLs, so name their host: export UNREEL_FETCH_FROM={entry.download.fetch_from}"
        )
    place = entry.name if is_default else str(plan.folder)
    command = ["unreel", "eval", place, "--model", "MODEL"]
    if not is_default and entry.evaluation is not None:
        command += ["--protocol", entry.evaluation.protocol]
        command += ["--split", entry.evaluation.split] if entry.evaluation.split else []
    return [*lines, f"Evaluate a model: `{shlex.join(command)}`"]


@dataclass(frozen=True, kw_only=True)
class NamedBenchmark:
    """A downloaded public benchmark."""

    entry: "CatalogueBenchmark"
    folder: Path
    revision: str
    """Full hash of the commit."""


def find_named_benchmark(place: str | Path | None) -> NamedBenchmark | None:
    """Return the downloaded benchmark that `place` names; `None` if it is an existing path or no name.

    Raises:
        UnreadableSourceError: The benchmark is not downloaded, or not completely.
    """
    name = str(place)
    if place is None or name not in list_entry_names("benchmarks") or Path(name).exists():
        return None
    from unreel.catalogue.download import read_download_record
    from unreel.catalogue.entries import get_benchmark

    entry = get_benchmark(name)
    if entry.download is None:
        raise InvalidSettingError(
            name,
            "unreel does not download this benchmark",
            f"See its steps: `unreel benchmarks get {name}`",
        )
    folder = read_environment_settings().benchmarks_folder / name
    record = read_download_record(folder)
    if record is None or not record.is_complete:
        problem = "not downloaded" if record is None else "not downloaded completely"
        size = _get_value(entry.size) or "size not stated"
        raise UnreadableSourceError(
            name, problem, f"Run `unreel benchmarks get {name}` first ({size})"
        )
    return NamedBenchmark(entry=entry, folder=folder, revision=record.revision)


S = TypeVar("S", bound=BenchmarkSettings)


def apply_catalogue_settings(
    settings: S, benchmark: NamedBenchmark, *, is_written: Container[str] = ()
) -> tuple[S, dict[str, str]]:
    """Return `settings` with the folder of `benchmark`, and its layout, protocol and split where none is given.

    Also return the protocol and split that were taken from the catalogue. `is_written` has the
    names of settings that a recipe gives.
    """
    download, defaults = benchmark.entry.download, benchmark.entry.evaluation
    field = "path" if hasattr(settings, "path") else "benchmark"
    folder: Path | str = benchmark.folder
    changes: dict[str, Any] = {
        field: str(folder) if isinstance(getattr(settings, field), str) else folder,
        "layout": settings.layout or (download.layout if download else None),
    }
    chosen = {
        name: getattr(defaults, name)
        for name in ("protocol", "split")
        if getattr(settings, name, "") is None and name not in is_written
    }
    chosen = {name: value for name, value in chosen.items() if value is not None}
    return replace(settings, **changes, **chosen), chosen


def describe_choice(benchmark: NamedBenchmark, chosen: Mapping[str, str]) -> str:
    """Return the line that states the commit of a named benchmark and the settings that it brings."""
    settings = ", ".join(f"{name} {value}" for name, value in chosen.items())
    start = f"{benchmark.entry.name}: commit {benchmark.revision[:12]} in {benchmark.folder}"
    return f"{start}; from the catalogue: {settings or 'nothing'}"


@dataclass(frozen=True, kw_only=True)
class PublishedResults:
    """Results that others published for a benchmark, and how a run differs from theirs."""

    benchmark: str
    source: str
    """Paper and table of `figures`; "" if there are none."""
    figures: Mapping[str, Mapping[str, float]]
    """Value of each model by metric of unreel."""
    statements: Sequence[Mapping[str, str]]
    """Other published figures as text, with mark and source."""
    differences: Mapping[str, str]
    """Frames, prompt and version of the run and of the published results."""


def find_published_results(
    path: Path, protocol: str, conditions: "Sequence[Condition]"
) -> PublishedResults | None:
    """Return the published results for the benchmark at `path`; `None` if it is no download by name."""
    from unreel.benchmarks.published.printed_tables import read_published_table
    from unreel.catalogue.download import read_download_record
    from unreel.catalogue.entries import get_benchmark

    record = read_download_record(path if path.is_dir() else path.parent)
    if record is None or record.name not in list_entry_names("benchmarks"):
        return None
    entry = get_benchmark(record.name)
    evaluation = entry.evaluation
    if evaluation is None or evaluation.protocol != protocol:
        return None
    source, published = "", evaluation.published
    figures: dict[str, dict[str, float]] = {}
    if published is not None:
        table = read_published_table(published.table)
        source = f"{table.paper}, {table.table}"
        for metric, column in published.metrics.items():
            rows = ((row[published.model], row[column]) for row in table.rows)
            figures[metric] = {model: float(cell) for model, cell in rows if cell}
    sampling = ", ".join(dict.fromkeys(condition.sampling for condition in conditions))
    prompt = ", ".join(dict.fromkeys(condition.prompt for condition in conditions))
    frames = (published.frames if published else None) or "not stated"
    has_prompt = published is not None and published.prompt == prompt
    return PublishedResults(
        benchmark=entry.name,
        source=source,
        figures=figures,
        statements=[
            {"published": str(fact.value), "mark": fact.mark.value, "source": fact.source}
            for fact in entry.published
            if fact.value is not None
        ],
        differences={
            "frames": f"here {sampling}, published {frames}",
            "prompt": f"here {prompt}, published {'the same words' if has_prompt else 'not stated'}",
            "version": f"here commit {record.revision[:12]}, published not stated",
        },
    )


def _get_value(fact: Any) -> Any:
    return fact.value if fact is not None else None
