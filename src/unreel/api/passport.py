"""Passport of false alarms: reviewers are asked about real footage of a user's own."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.evaluation import (
    EvalSettings,
    ModelSettings,
    SamplingSettings,
    describe_contacts,
    evaluate_run,
    plan_runs,
    require_model_keys,
    require_ready,
)
from unreel.api.shared_settings import EngineSettings, TrustSettings
from unreel.core.command_options import Option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import needs_extra
from unreel.core.safe_names import make_safe_file_name
from unreel.protocols.protocol import REVIEWED, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from unreel.engine.progress import JobCallbacks
    from unreel.evaluation.passport import FalseAlarmPassport
    from unreel.evaluation.run_job import EvalRun, EvalSummary

_FOOTAGE = "footage.jsonl"


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings(ModelSettings, SamplingSettings, EngineSettings, TrustSettings):
    """Settings of `calibrate`."""

    archive: Annotated[Path, Option(is_argument=True, kind="existing")]
    models: Annotated[tuple[str, ...], Option(name="--model", kind="model", is_required=True)]
    """Model to ask, as in `unreel review`; local is the first model on this computer that sees pictures. Repeatable."""
    protocols: Annotated[tuple[str, ...], Option(name="--protocol", kind="clip protocol")] = ()
    """Protocol of the questions. Repeatable.  [default: trace, realism, as in `unreel review`]"""
    conditions: Annotated[
        tuple[str, ...], Option(name="--condition", metavar="NAME=VALUE,...")
    ] = ()
    """Input settings of the questions, separated by commas: sampling=PLAN, audio=on, watermark=removed, thinking=on|off, prompt=VARIANT. Repeatable: each condition is evaluated."""
    parser: Mode = "lenient"
    """Parser of the answers, as in `unreel review`."""
    out: Annotated[Path, Option(kind="new file", metavar="FILE")] = Path("passport.json")
    """Output file of the passport. The answers are stored in the folder of the same name with `-runs`."""
    max_connections: Annotated[int | None, Option(low=1)] = None
    """Maximum number of concurrent questions to a model.  [default: 16]"""
    retry_failed: bool = False
    """Retry the questions that failed in earlier calls."""


def calibrate(
    settings: CalibrateSettings,
    callbacks: "JobCallbacks",
    on_run: "Callable[[EvalRun], None]",
    on_result: "Callable[[EvalRun, EvalSummary], None]",
) -> "FalseAlarmPassport":
    """Ask reviewers about all clips of an archive of real footage, and write the passport.

    Stored answers are not requested again: the same call continues an interrupted one, and asks only
    about new clips of a grown archive.

    Raises:
        InvalidSettingError: A clip of the archive is labelled as generated, or no clip has an answer.
        UnreadableSourceError: The archive contains no video.
    """
    with needs_extra("eval"):
        from unreel.evaluation.footage_answers import build_passport
        from unreel.evaluation.passport import write_passport

    models = settings.models
    if "local" in models:
        from unreel.reviewers.endpoint.servers import require_local_model

        local = require_local_model()
        models = tuple(local if model == "local" else model for model in models)
    require_model_keys(models)
    folder = settings.out.with_name(f"{settings.out.stem}-runs")
    footage = _write_footage_table(settings.archive, folder)
    runs: list[EvalRun] = []
    for model in dict.fromkeys(models):
        for protocol in dict.fromkeys(settings.protocols or REVIEWED):
            name = make_safe_file_name(f"{model}-{protocol}")
            planned = plan_runs(
                EvalSettings(
                    benchmark=str(footage),
                    models=(model,),
                    protocol=protocol,
                    conditions=settings.conditions,
                    nframe=settings.nframe,
                    fps=settings.fps,
                    recorded=settings.recorded,
                    show=settings.show,
                    box_space=settings.box_space,
                    prices=settings.prices,
                    deadline_s=settings.deadline_s,
                    max_connections=settings.max_connections,
                    engine=settings.engine,
                    out=str(folder / name),
                    trusted=settings.trusted,
                    allow_outside=True,
                    accept_changed=True,
                )
            )
            runs.extend(planned)
    for line in describe_contacts(runs):
        callbacks.on_note(line)
    require_ready(runs, engine=settings.engine)
    eval_settings = EvalSettings(engine=settings.engine, retry_failed=settings.retry_failed)
    for run in runs:
        on_run(run)
        on_result(run, evaluate_run(run, eval_settings, callbacks, facts_table=runs[0].clips))
    passport = build_passport(
        runs,
        mode=settings.parser,
        archive=settings.archive.resolve().name,
        made_at=datetime.now(UTC),
    )
    OutputDirectory(settings.out.parent).write(settings.out.name, write_passport(passport))
    return passport


def _write_footage_table(archive: Path, folder: Path) -> Path:
    """Write the table of the archive's clips, which the runs ask about; all are real.

    Each has the realism score 5, because `realism` is only asked about clips with a score. Clips of one
    source are a group, so that they count as dependent.
    """
    from unreel.benchmarks.entry import Entry
    from unreel.benchmarks.folder_layout import walk_videos
    from unreel.benchmarks.loader import find_matching_layouts, open_benchmark
    from unreel.core.clip import Generated

    rows: list[dict[str, Any]] = []
    if archive.is_dir() and not find_matching_layouts(archive):
        for video in walk_videos(archive):
            if isinstance(video, str):
                source = video.rpartition("/")[0].partition("/")[0]
                rows.append({"file": str(archive.resolve() / video), "group": source})
    else:
        benchmark = open_benchmark(archive)
        for entry in benchmark:
            if not isinstance(entry, Entry):
                continue
            if isinstance(entry.origin, Generated):
                raise InvalidSettingError(
                    "ARCHIVE",
                    f"{entry.name} is labelled as generated, and a passport is made from real clips",
                    "Leave out the generated clips",
                )
            place = benchmark.find(entry)
            location = place if "://" in place else str(Path(place).resolve())
            rows.append({"file": location, "group": entry.source or entry.group})
    if not rows:
        raise UnreadableSourceError(
            str(archive), "no video is in it", "Name a folder of real footage, or a table of clips"
        )
    output = OutputDirectory(folder)
    with output.create_text(_FOOTAGE) as file:
        for row in rows:
            file.write(json.dumps({**row, "label": "real", "score": 5}, ensure_ascii=False) + "\n")
    return folder / _FOOTAGE


def list_passport_rows(passport: "FalseAlarmPassport") -> list[dict[str, object]]:
    """Return the false alarms of each reviewer: over all clips, and by codec, size and source."""
    from unreel.evaluation.passport import iter_strata
    from unreel.stats.proportion import clopper_pearson_interval

    rows: list[dict[str, object]] = []
    for measured in passport.reviewers:
        n_all = sum(cell.n for cell in measured.cells)
        n_alarms_all = sum(cell.n_alarms for cell in measured.cells)
        strata = [("all", "", n_all, n_alarms_all), *iter_strata(measured)]
        for name, value, n, n_alarms in strata:
            row = {
                "reviewer": measured.reviewer,
                "protocol": measured.instrument,
                "stratum": f"{name} {value}".strip(),
                "clips": n,
                "alarms": "",
                "rate": "",
                "95 % interval": "",
            }
            if measured.has_label and n:
                low, high = clopper_pearson_interval(n_alarms, n, level=0.95)
                row |= {"alarms": n_alarms, "rate": f"{100 * n_alarms / n:.1f} %"}
                row["95 % interval"] = f"{100 * low:.1f} to {100 * high:.1f}"
            rows.append(row)
    return rows
