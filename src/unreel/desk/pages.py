"""Pages of the desk as HTML: the list of cases, a batch, a case, and a refusal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.small_documents import parse_object
from unreel.desk.case_state import ENDED, VERDICTS, CaseRecord
from unreel.desk.cases import CaseFilter, sort_for_triage
from unreel.desk.keyframes import THUMB, read_keyframes
from unreel.desk.review_case import EVIDENCE, PAGE_PARTS
from unreel.desk.reviewer_sets import OpenSet
from unreel.desk.settings import DeskSettings
from unreel.desk.worker import CaseWorker
from unreel.pages.page import BASE, PRINT, render, whole_page
from unreel.report.review.evidence import RESULT, SCRIPTS, STYLES
from unreel.report.review.opinion_text import NO_PROOF
from unreel.rewards.service.limits import RequestRefusedError

_STYLES: Final = (*STYLES, "unreel.report.review:index.css", "unreel.desk:desk.css")
_SCRIPT: Final = "unreel.desk:desk.js"
STATIC_FILES: Final = frozenset({BASE, PRINT, *_STYLES, *SCRIPTS, _SCRIPT})
_MOST_LISTED: Final = 200
_MAIN_END: Final = "</main>"
ENGINES: Final = {
    "Google Lens": "https://lens.google.com/",
    "Bing Visual Search": "https://www.bing.com/visualsearch",
    "Yandex Images": "https://yandex.com/images/",
    "TinEye": "https://tineye.com/",
}
"""Reverse image search engines, which a person opens and gives a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """Data that every page of a person shows."""

    person: str
    form_token: str
    settings: DeskSettings


def render_list(  # noqa: PLR0913  one parameter for each part
    context: PageContext,
    cases: Sequence[CaseRecord],
    worker: CaseWorker,
    *,
    chosen: CaseFilter,
    people: Sequence[str],
    sets: Mapping[str, OpenSet],
    folders: Sequence[str],
) -> str:
    """Return the start page: the form for clips, the filter, and the cases in triage order."""
    shown = cases[:_MOST_LISTED]
    body = render(
        "unreel.desk:list.html",
        context=context,
        groups=_build_groups(shown, worker),
        n_cases=len(cases),
        n_hidden=len(cases) - len(shown),
        chosen=chosen,
        verdicts=VERDICTS,
        people=people,
        sets=[*sets.values()],
        folders=folders,
        no_proof=NO_PROOF,
        batch="",
    )
    return _make_page("Cases: unreel desk", body)


def render_batch(
    context: PageContext, batch: str, cases: Sequence[CaseRecord], worker: CaseWorker
) -> str:
    """Return the page of a batch: its cases in triage order, and its bundle."""
    body = render(
        "unreel.desk:batch.html",
        context=context,
        groups=_build_groups(cases, worker),
        n_cases=len(cases),
        n_ended=sum(case.stage in ENDED for case in cases),
        added_at=_format_time(cases[-1].added_at),
        batch=batch,
        no_proof=NO_PROOF,
    )
    return _make_page("Batch: unreel desk", body)


def render_case(
    context: PageContext, case: CaseRecord, worker: CaseWorker, *, has_browser: bool
) -> str:
    """Return the page of a case: its evidence page with the case file before the end of its content."""
    progress = worker.describe(case)
    parts: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    folder = OutputDirectory(case.folder)
    if case.stage in {"shown", "done"} and folder.size(PAGE_PARTS) is not None:
        parts = _read_json(folder, PAGE_PARTS)
        result = _read_json(folder, f"{EVIDENCE}/{RESULT}")
    keyframes, problem = read_keyframes(case.folder)
    values = {
        "context": context,
        "case": case,
        "name": sanitise_line(case.name),
        "progress": progress,
        "is_ended": case.stage in ENDED,
        "can_ask_again": case.stage in ENDED and case.attention == "failure",
        "verdict": case.verdict and VERDICTS[case.verdict.verdict or "not-known"],
        "entries": [
            {
                "person": entry.person,
                "at": _format_time(entry.at),
                "text": sanitise_lines(entry.text),
                "verdict": entry.verdict and VERDICTS[entry.verdict],
            }
            for entry in case.entries
        ],
        "added_at": _format_time(case.added_at),
        "keyframes": keyframes,
        "keyframe_problem": problem,
        "engines": ENGINES,
        "facts": result and result["facts"],
        "verdicts": VERDICTS,
        "has_browser": has_browser,
        "has_evidence": parts is not None,
    }
    bar, file = (render(f"unreel.desk:{name}.html", **values) for name in ("bar", "case_file"))
    if parts is None:
        body = bar + render("unreel.desk:waiting.html", **values, case_file=file)
        return _make_page(f"{sanitise_line(case.name)}: unreel desk", body)
    before, end, after = parts["body"].rpartition(_MAIN_END)
    body = bar + Markup(before) + file + Markup(end + after)  # noqa: S704  stored by `review_case`
    return _make_page(parts["title"], body, data=parts["data"])


def render_refusal(refusal: RequestRefusedError) -> str:
    """Return the page of a refused request."""
    body = render("unreel.desk:refusal.html", status=refusal.status, message=refusal.message)
    return _make_page("unreel desk", body)


def _make_page(title: str, body: Markup, data: Mapping[str, Any] | None = None) -> str:
    return whole_page(
        title=title,
        body=body,
        styles=_STYLES,
        scripts=[*(SCRIPTS if data else ()), _SCRIPT],
        data=data or {},
        fetches=True,
        served_at="/static/",
    )


def _build_groups(
    cases: Sequence[CaseRecord], worker: CaseWorker
) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (title, [_build_row(case, worker) for case in own]) for title, own in sort_for_triage(cases)
    ]


def _build_row(case: CaseRecord, worker: CaseWorker) -> dict[str, Any]:
    progress = worker.describe(case)
    verdict = case.verdict
    return {
        "id": case.id,
        "name": sanitise_line(case.name),
        "sentence": case.sentence,
        "claims": case.claims,
        "stage": progress.stage,
        "progress": progress.text,
        "verdict": verdict and VERDICTS[verdict.verdict or "not-known"],
        "decided_by": verdict and verdict.person,
        "person": case.person,
        "added_at": _format_time(case.added_at),
        "batch": case.batch,
        "has_thumb": bool(OutputDirectory(case.folder).size(THUMB)),
    }


def _read_json(folder: OutputDirectory, name: str) -> Mapping[str, Any]:
    with folder.read(name) as file:
        return parse_object(file.read())


def _format_time(at: datetime) -> str:
    return at.strftime("%-d %B %Y, %H:%M UTC")
