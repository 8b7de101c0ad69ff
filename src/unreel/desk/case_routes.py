"""Routes of a case: its page, forms, files, PDF and bundle."""

import asyncio
from typing import Final

from fastapi import FastAPI, Request
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
    LONGEST_TEXT,
    SEE_OTHER,
    DeskService,
    raise_invalid_request,
    raise_not_found,
)
from unreel.report.review.browser_pdf import PDF, print_page_as_pdf
from unreel.report.review.evidence_page import PAGE

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "jpg": "image/jpeg",
    "json": "application/json",
    "mp4": "video/mp4",
    "png": "image/png",
    "webm": "video/webm",
}
_NO_SCRIPTS: Final = {"content-security-policy": "sandbox; default-src 'none'; media-src 'self'"}
"""Policy of files that are no pages."""


def add_case_form_routes(app: FastAPI, service: DeskService) -> None:
    """Add the routes of the forms on the page of a case."""

    @app.post("/cases/{case_id}/entries")
    async def add_entry(request: Request, case_id: str) -> Response:
        """Store a note or a verdict of a person."""
        async with service.read_form(request) as form:
            text, verdict = (str(form.get(name, "")) for name in ("text", "verdict"))
        case = service.find(case_id)
        text = sanitise_lines(text.replace("\r\n", "\n").strip())[:LONGEST_TEXT]
        verdict = verdict if verdict in VERDICTS else ""
        if not text and not verdict:
            raise_invalid_request("Write a note, or choose a verdict")
        facts = {"text": text, "verdict": verdict}
        await asyncio.to_thread(service.store.record, case, "entry", request.state.person, **facts)
        return RedirectResponse(f"/cases/{case.id}/#case-file", SEE_OTHER)

    @app.post("/cases/{case_id}/again")
    async def ask_again(request: Request, case_id: str) -> Response:
        """Put a case with missing answers into the queue again."""
        async with service.read_form(request):
            case = service.find(case_id)
        if case.is_ended:
            service.store.record(case, "again", request.state.person)
            service.worker.add(case)
        return RedirectResponse(f"/cases/{case.id}/", SEE_OTHER)

    @app.post("/cases/{case_id}/delete")
    async def delete_case(request: Request, case_id: str) -> Response:
        """Delete a case with its files."""
        async with service.read_form(request):
            case = service.find(case_id)
        await asyncio.to_thread(service.worker.delete, case, request.state.person)
        return RedirectResponse("/", SEE_OTHER)


def add_case_file_route(app: FastAPI, service: DeskService) -> None:
    """Add the routes of the page and the files of a case; the last one matches every path."""

    @app.get("/cases/{case_id}/")
    def show_case(request: Request, case_id: str) -> Response:
        """Return the page of a case."""
        values = service.build_page_values(request) | {"has_browser": service.browser is not None}
        return HTMLResponse(render_case_page(service.find(case_id), service.worker, **values))

    @app.get("/cases/{case_id}/bundle.zip")
    def download_bundle(request: Request, case_id: str) -> Response:
        """Return the custody bundle of a case."""
        return stream_bundle(service, [service.find(case_id)], f"case-{case_id}", request)

    @app.get(f"/cases/{{case_id}}/{PDF}")
    async def print_evidence(case_id: str) -> Response:
        """Return the evidence page as PDF, printed at the first request."""
        case = service.find(case_id)
        page = case.folder / EVIDENCE / PAGE
        async with service.printing:
            if service.browser is None or case.stage != "done" or not page.is_file():
                raise_not_found("No PDF can be made here. Print the page in your browser")
            if not page.with_name(PDF).is_file():
                problem = await asyncio.to_thread(print_page_as_pdf, page, browser=service.browser)
                if problem:
                    raise_not_found(f"No PDF: {problem}. Print the page in your browser")
        return FileResponse(page.with_name(PDF), filename=PDF, media_type="application/pdf")

    @app.get("/cases/{case_id}/original")
    def download_original(case_id: str) -> Response:
        """Return the original file."""
        case = service.find(case_id)
        kind = "application/octet-stream"
        return FileResponse(case.original, filename=case.name, media_type=kind, headers=_NO_SCRIPTS)

    @app.get("/cases/{case_id}/{path:path}")
    def read_file(case_id: str, path: str) -> Response:
        """Return a file of the evidence, a keyframe, the thumbnail or the playable clip."""
        own = path in {THUMB, "clip.mp4", "clip.webm"} or path.startswith(f"{KEYFRAMES}/")
        return _build_file_response(service.find(case_id), "" if own else EVIDENCE, path)


def stream_bundle(
    service: DeskService, cases: list[CaseRecord], name: str, request: Request
) -> Response:
    """Return the bundle of ended cases as a download, and log it in each case."""
    if not all(case.is_ended for case in cases):
        raise_invalid_request("The bundle can be downloaded when the review has ended")
    for case in cases:
        service.store.record(case, "bundle", request.state.person)
    headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
    chunks = iter_custody_bundle_bytes(cases, service.sign)
    return StreamingResponse(chunks, media_type="application/zip", headers=headers)


def _build_file_response(case: CaseRecord, below: str, path: str) -> Response:
    """Return a file below a folder of the case; links and paths that lead out are refused."""
    folder = case.folder / below
    try:
        is_file = OutputDirectory(folder).size(path) is not None
    except (InvalidValueError, UnsafeTargetError, OSError):
        is_file = False
    kind = _TYPES.get(path.rpartition(".")[2])
    if not is_file or kind is None:
        raise_not_found("There is no such file")
    headers = {} if path == PAGE else _NO_SCRIPTS
    return FileResponse(folder / path, media_type=kind, headers=headers)
