"""Pages of the desk as HTML: the list of cases, a batch, a case, and a refusal."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from unreel.core.input_files import parse_json_object
from unreel.core.output_files import OutputDirectory
from unreel.desk.case_store import VERDICTS, CaseRecord, group_cases_for_triage
from unreel.desk.review_case import EVIDENCE, PAGE_PARTS
from unreel.desk.worker import CaseReviewWorker
from unreel.pages.html_page import BASE, PRINT, build_html_page, render_template
from unreel.report.review.evidence_page import RESULT, SCRIPTS, STYLES
from unreel.report.review.opinion_text import NO_PROOF

_STYLES = (*STYLES, "unreel.report.review:index.css", "unreel.desk:desk.css")
_SCRIPT = "unreel.desk:desk.js"
STATIC_FILES = frozenset({BASE, PRINT, *_STYLES, *SCRIPTS, _SCRIPT})
MAX_LISTED = 200
_MAIN_END = "</main>"
_ENGINES = {
    "Google Lens": "https://lens.google.com/",
    "Bing Visual Search": "https://www.bing.com/visualsearch",
    "Yandex Images": "https://yandex.com/images/",
    "TinEye": "https://tineye.com/",
}
"""Reverse image search engines, where a person uploads a picture."""


def render_case_list_page(
    template: str, cases: Sequence[CaseRecord], worker: CaseReviewWorker, **values: object
) -> str:
    """Return the HTML of the page `list` or `batch`: cases in triage order, each with its progress."""
    listed = cases[:MAX_LISTED]
    body = render_template(
        f"unreel.desk:{template}.html",
        groups=group_cases_for_triage(listed),
        progress={case.id: worker.describe(case) for case in listed},
        n_cases=len(cases),
        n_hidden=len(cases) - len(listed),
        n_ended=sum(case.is_ended for case in cases),
        verdicts=VERDICTS,
        no_proof=NO_PROOF,
        **values,
    )
    return _build_desk_page("unreel desk", body)


def render_case_page(case: CaseRecord, worker: CaseReviewWorker, **values: object) -> str:
    """Return a case's HTML: evidence with notes, keyframes and forms, or its progress before that."""
    folder = OutputDirectory(case.folder)
    parts: Mapping[str, Any] = {}
    if case.stage in {"shown", "done"} and folder.size(PAGE_PARTS) is not None:
        parts = _read_json_file(folder, PAGE_PARTS)
        values["facts"] = _read_json_file(folder, f"{EVIDENCE}/{RESULT}")["facts"]
    values |= {"case": case, "verdicts": VERDICTS, "progress": worker.describe(case)}
    values["has_evidence"] = bool(parts)
    file = render_template("unreel.desk:case_file.html", engines=_ENGINES, **values)
    bar = render_template("unreel.desk:bar.html", **values)
    if case.damage:
        body = bar + render_template("unreel.desk:damaged.html", **values)
        return _build_desk_page(f"{case.name}: unreel desk", body)
    if not parts:
        body = bar + render_template("unreel.desk:waiting.html", case_file=file, **values)
        return _build_desk_page(f"{case.name}: unreel desk", body)
    before, end, after = parts["body"].rpartition(_MAIN_END)
    body = bar + Markup(before) + file + Markup(end + after)  # noqa: S704  stored by `review_case`
    return _build_desk_page(parts["title"], body, data=parts["data"])


def render_refusal_page(status: int | str, message: str) -> str:
    """Return the HTML of the page that explains why a request was refused."""
    body = render_template("unreel.desk:refusal.html", status=status, message=message)
    return _build_desk_page("unreel desk", body)


def _build_desk_page(title: str, body: Markup, data: Mapping[str, Any] | None = None) -> str:
    return build_html_page(
        title=title,
        body=body,
        styles=_STYLES,
        scripts=[*(SCRIPTS if data else ()), _SCRIPT],
        data=data or {},
        fetches=True,
        served_at="/static/",
    )


def _read_json_file(directory: OutputDirectory, name: str) -> Mapping[str, Any]:
    with directory.read(name) as file:
        return parse_json_object(file.read())
