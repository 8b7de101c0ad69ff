"""Routes of a case: its page, forms, files, PDF and bundle."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from unreel.core.errors import InvalidValueError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_lines
from unreel.desk.case_store import VERDICTS, CaseRecord
from unreel.desk.custody_bundle import iter_custody_bundle_bytes
from unreel.desk.keyframes import KEYFRAMES, THUMB
from unreel.desk.pages import render_case_page
from unreel.desk.review_case import EVIDENCE
from unreel.desk.service import (
    MAX_TEXT,
    SEE_OTHER,
    Case,
    DeskService,
    Form,
    IntactCase,
    Service,
    UsableCase,
    find_intact_case,
)
from unreel.report.review.browser_pdf import PDF, print_page_as_pdf
from unreel.report.review.evidence_page import PAGE
from unreel.webapp.refusals import InvalidRequestError, RequestRefusedError

ROUTES = APIRouter(prefix="/cases/{case_id}")
_TYPES = {
    "html": "text/html; charset=utf-8",
    "jpg": "image/jpeg",
    "json": "application/json",
    "mp4": "video/mp4",
    "png": "image/png",
    "webm": "video/webm",
}
_NO_SCRIPTS = {"content-security-policy": "sandbox; default-src 'none'; media-src 'self'"}
"""Content security policy of files that are not pages."""


@ROUTES.post("/entries")
async def add_entry(request: Request, desk: Service, form: Form, case: UsableCase) -> Response:
    """Store a note or a verdict of a person."""
    text, verdict = (str(form.get(name, "")) for name in ("text", "verdict"))
    text = sanitise_lines(text.replace("\r\n", "\n").strip())[:MAX_TEXT]
    verdict = verdict if verdict in VERDICTS else ""
    if not text and not verdict:
        raise InvalidRequestError("Write a note, or choose a verdict")
    fields = {"text": text, "verdict": verdict}
    await asyncio.to_thread(desk.store.record, case, "entry", request.state.person, **fields)
    return RedirectResponse(f"/cases/{case.id}/#case-file", SEE_OTHER)


@ROUTES.post("/again")
async def ask_again(request: Request, desk: Service, _form: Form, case: UsableCase) -> Response:
    """Put a case with missing answers into the queue again."""
    if case.is_ended:
        desk.store.record(case, "again", request.state.person)
        desk.worker.add(case)
    return RedirectResponse(f"/cases/{case.id}/", SEE_OTHER)


@ROUTES.post("/delete")
async def delete_case(request: Request, desk: Service, _form: Form, case: Case) -> Response:
    """Delete a case with its files."""
    await asyncio.to_thread(desk.worker.delete, case, request.state.person)
    return RedirectResponse("/", SEE_OTHER)


@ROUTES.get("/")
def show_case(request: Request, desk: Service, case: Case) -> Response:
    """Return the page of a case."""
    values = desk.build_page_values(request) | {"has_browser": desk.browser is not None}
    return HTMLResponse(render_case_page(case, desk.worker, **values))


@ROUTES.get("/bundle.zip")
def download_bundle(request: Request, desk: Service, case: Case) -> Response:
    """Return the custody bundle of a case."""
    return stream_bundle(desk, [case], f"case-{case.id}", request)


@ROUTES.get(f"/{PDF}")
async def print_evidence(desk: Service, case: IntactCase) -> Response:
    """Return the evidence page as PDF, printed at the first request."""
    page, problem = case.folder / EVIDENCE / PAGE, ""
    pdf = page.with_name(PDF)
    async with desk.printing:
        if desk.browser is None or case.stage != "done" or not page.is_file():
            problem = "a PDF requires Chromium on the server and a finished review"
        elif not pdf.is_file():
            problem = await asyncio.to_thread(print_page_as_pdf, page, browser=desk.browser)
    if problem:
        raise RequestRefusedError(
            404, "not-found", f"No PDF: {problem}. Print the page in your browser"
        )
    return FileResponse(pdf, filename=PDF, media_type="application/pdf")


@ROUTES.get("/original")
def download_original(case: IntactCase) -> Response:
    """Return the original file."""
    kind = "application/octet-stream"
    return FileResponse(case.original, filename=case.name, media_type=kind, headers=_NO_SCRIPTS)


@ROUTES.get("/{path:path}")
def read_file(case: UsableCase, path: str) -> Response:
    """Return a file of the evidence, a keyframe, the thumbnail or the playable clip.

    Links, paths that lead out of these folders and unknown types are refused.
    """
    is_evidence = path not in {THUMB, "clip.mp4", "clip.webm"} and not path.startswith(
        f"{KEYFRAMES}/"
    )
    folder = case.folder / EVIDENCE if is_evidence else case.folder
    try:
        is_file = OutputDirectory(folder).size(path) is not None
    except (InvalidValueError, UnsafeTargetError, OSError):
        is_file = False
    kind = _TYPES.get(path.rpartition(".")[2])
    if not is_file or kind is None:
        raise RequestRefusedError(404, "not-found", "The file does not exist")
    headers = {} if path == PAGE else _NO_SCRIPTS
    return FileResponse(folder / path, media_type=kind, headers=headers)


def stream_bundle(
    desk: DeskService, cases: list[CaseRecord], name: str, request: Request
) -> Response:
    """Return the bundle of ended cases as a download, and log it in each case."""
    if not all(case.is_ended for case in cases):
        raise InvalidRequestError("The bundle can be downloaded when the review has ended")
    for case in cases:
        find_intact_case(case, desk)
    for case in cases:
        desk.store.record(case, "bundle", request.state.person)
    headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
    chunks = iter_custody_bundle_bytes(cases, desk.sign, desk.stamp)
    return StreamingResponse(chunks, media_type="application/zip", headers=headers)
