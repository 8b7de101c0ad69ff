"""Files of cases: bundles, the PDF, the original, and the files that pages show."""

import asyncio
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response

from unreel.core.errors import InvalidValueError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory
from unreel.desk.case_state import CaseRecord
from unreel.desk.keyframes import KEYFRAMES, THUMB
from unreel.desk.review_case import EVIDENCE
from unreel.desk.service import DeskService, refuse_absent
from unreel.report.review.browser_pdf import PDF, print_page_as_pdf
from unreel.report.review.evidence import PAGE

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


def add_downloads(app: FastAPI, service: DeskService) -> None:
    """Add the routes of bundles, the PDF and the original."""

    @app.get("/cases/{case_id}/bundle.zip")
    def download_bundle(request: Request, case_id: str) -> Response:
        """Return the custody bundle of a case."""
        case = service.find(case_id)
        return service.stream_bundle([case], f"case-{case.id}", request.state.person)

    @app.get("/batches/{batch}/bundle.zip")
    def download_batch(request: Request, batch: str) -> Response:
        """Return the custody bundle of a batch."""
        cases = service.list_batch(batch)[::-1]
        return service.stream_bundle(cases, f"batch-{batch}", request.state.person)

    @app.get(f"/cases/{{case_id}}/{PDF}")
    async def print_evidence(case_id: str) -> Response:
        """Return the evidence page as PDF, printed at the first request."""
        case = service.find(case_id)
        page = case.folder / EVIDENCE / PAGE
        async with service.printing:
            if service.browser is None or case.stage != "done" or not page.is_file():
                refuse_absent("No PDF can be made here. Print the page in your browser")
            if not page.with_name(PDF).is_file():
                problem = await asyncio.to_thread(print_page_as_pdf, page, browser=service.browser)
                if problem:
                    refuse_absent(f"No PDF: {problem}. Print the page in your browser")
        return FileResponse(page.with_name(PDF), filename=PDF, media_type="application/pdf")

    @app.get("/cases/{case_id}/original")
    def download_original(case_id: str) -> Response:
        """Return the original file."""
        case = service.find(case_id)
        kind = "application/octet-stream"
        return FileResponse(case.original, filename=case.name, media_type=kind, headers=_NO_SCRIPTS)


def add_case_files(app: FastAPI, service: DeskService) -> None:
    """Add the route of all other files of a case; it comes last, because it matches every path."""

    @app.get("/cases/{case_id}/{path:path}")
    def read_file(case_id: str, path: str) -> Response:
        """Return a file of the evidence, a keyframe, the thumbnail or the playable clip."""
        case = service.find(case_id)
        if path in {THUMB, "clip.mp4", "clip.webm"} or path.startswith(f"{KEYFRAMES}/"):
            return _send_file(case, "", path)
        return _send_file(case, EVIDENCE, path)


def _send_file(case: CaseRecord, below: str, path: str) -> Response:
    """Return a file below a folder of the case; links and paths that lead out are refused."""
    folder = case.folder / below
    try:
        is_file = OutputDirectory(folder).size(path) is not None
    except (InvalidValueError, UnsafeTargetError, OSError):
        is_file = False
    kind = _TYPES.get(path.rpartition(".")[2])
    if not is_file or kind is None:
        refuse_absent("There is no such file")
    headers = {} if path == PAGE else _NO_SCRIPTS
    return FileResponse(folder / path, media_type=kind, headers=headers)
