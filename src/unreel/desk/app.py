"""FastAPI application of the desk: pages, forms, files, progress and bundles."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from itertools import chain
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from unreel.core.errors import InvalidValueError, UnreelError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import EnvironmentSettings, read_settings
from unreel.desk.access import LOGIN, DeskAccess, DeskGate, build_refusal, name_cookie
from unreel.desk.bundle import write_bundle
from unreel.desk.case_state import ENDED, VERDICTS, CaseRecord
from unreel.desk.cases import CaseFilter, CaseStore
from unreel.desk.folders import list_folders, open_clips
from unreel.desk.keyframes import FOLDER as KEYFRAMES
from unreel.desk.pages import (
    STATIC_FILES,
    PageContext,
    render_batch,
    render_case,
    render_list,
)
from unreel.desk.review_case import EVIDENCE, THUMB
from unreel.desk.reviewer_sets import open_set
from unreel.desk.settings import DeskSettings
from unreel.desk.signature import sign_manifest
from unreel.desk.worker import CaseWorker
from unreel.pages.page import read_static_file
from unreel.report.review.browser_pdf import PDF, find_browser, write_pdf
from unreel.report.review.evidence import PAGE
from unreel.rewards.service.limits import RequestRefusedError

_POLL_S: Final = 0.5
_BEAT_S: Final = 15.0
_MOST_CLIPS: Final = 500
_LONGEST_TEXT: Final = 10_000
_SEE_OTHER: Final = 303
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "jpg": "image/jpeg",
    "json": "application/json",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "webm": "video/webm",
}
_NO_SCRIPTS: Final = {"content-security-policy": "sandbox; default-src 'none'; media-src 'self'"}
"""Policy of files that are no pages."""


class DeskService:
    """Open parts of one desk."""

    def __init__(
        self,
        settings: DeskSettings,
        environment: EnvironmentSettings,
        on_link: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.sets = {each.name: open_set(each, environment) for each in settings.reviewers}
        if settings.signing_key is not None:
            sign_manifest(b"", settings.signing_key)
        self.access = DeskAccess(settings.proxy, on_link)
        self.store = CaseStore(settings.cases)
        self.worker = CaseWorker(
            self.store, self.sets, settings=settings, environment=environment
        )
        self.browser = find_browser()
        self.printing = asyncio.Lock()

    def find(self, case_id: str) -> CaseRecord:
        """Return a case; refuse an id without one."""
        case = self.store.find(case_id)
        if case is None:
            raise _build_absence("There is no such case. It may have been deleted")
        return case

    def list_batch(self, batch: str) -> list[CaseRecord]:
        """Return the cases of a batch; refuse one without cases."""
        cases = self.store.select(CaseFilter(batch=batch)) if batch else []
        if not cases:
            raise _build_absence("There is no such batch. Its cases may have been deleted")
        return cases

    def stream_bundle(self, cases: list[CaseRecord], name: str, person: str) -> Response:
        """Return the bundle of ended cases as a download, and log it in each case."""
        if any(case.stage not in ENDED for case in cases):
            status, message = 409, "The bundle can be downloaded when the review has ended"
            raise RequestRefusedError(status, "not-ready", message)
        for case in cases:
            self.store.record(case, "bundle", person)
        key = self.settings.signing_key
        chunks = write_bundle(cases, None if key is None else partial(sign_manifest, key=key))
        headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
        return StreamingResponse(chunks, media_type="application/zip", headers=headers)

    def close(self) -> None:
        """Stop the work, and let another process open the cases."""
        self.worker.close()
        self.store.close()


def create_desk(
    settings: DeskSettings,
    *,
    environment: EnvironmentSettings | None = None,
    on_link: Callable[[str], None] = lambda _path: None,
) -> FastAPI:
    """Return the application; its work begins and ends with its lifespan.

    Args:
        settings: Content of `desk.toml`.
        environment: Settings of the environment; read if missing.
        on_link: Callback that receives the path of each further one-time link.
    """
    service = DeskService(settings, environment or read_settings(), on_link)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="unreel desk", lifespan=live, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.desk = service
    app.add_middleware(DeskGate, access=service.access, settings=settings)
    _add_errors(app)
    _add_entrance(app, service)
    _add_lists(app, service)
    _add_forms(app, service)
    _add_downloads(app, service)
    _add_case_files(app, service)
    return app


def _add_entrance(app: FastAPI, service: DeskService) -> None:
    @app.get(LOGIN)
    async def open_session(request: Request, token: str = "") -> Response:
        """Exchange the one-time token for a session cookie."""
        response = RedirectResponse("/", _SEE_OTHER)
        headers = {name: value.decode("latin-1") for name, value in request.headers.raw}
        if service.access.identify(request.scope, headers) is not None:
            return response
        session = service.access.open_session(token)
        if session is None:
            status, message = 401, "The link was used before. `unreel desk` has printed a new one"
            raise RequestRefusedError(status, "unauthorised", message)
        response.set_cookie(
            name_cookie(request.scope), session, httponly=True, samesite="strict", path="/"
        )
        return response

    @app.get("/static/{name}")
    async def read_static(name: str) -> Response:
        """Return a style or a script of the pages."""
        if name not in STATIC_FILES:
            raise _build_absence("There is no such file")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        headers = {"cache-control": "max-age=300"}
        return Response(str(read_static_file(name)), media_type=kind, headers=headers)


def _add_lists(app: FastAPI, service: DeskService) -> None:
    @app.get("/")
    def show_list(  # noqa: PLR0913  one parameter for each field of the filter
        request: Request,
        text: str = "",
        since: str = "",
        until: str = "",
        verdict: str = "",
        person: str = "",
    ) -> Response:
        """Return the start page."""
        chosen = CaseFilter(
            text=text.strip(),
            since=_read_date(since),
            until=_read_date(until),
            verdict=verdict,
            person=person,
        )
        everything = service.store.select()
        people = {p for case in everything for p in (case.person, *(e.person for e in case.entries))}
        page = render_list(
            _make_context(request, service),
            list(filter(chosen.matches, everything)),
            service.worker,
            chosen=chosen,
            people=sorted(people),
            sets=service.sets,
            folders=list_folders(service.settings.roots),
        )
        return HTMLResponse(page)

    @app.get("/batches/{batch}/")
    def show_batch(request: Request, batch: str) -> Response:
        """Return the page of a batch."""
        cases = service.list_batch(batch)
        context = _make_context(request, service)
        return HTMLResponse(render_batch(context, batch, cases, service.worker))

    @app.get("/cases/{case_id}/")
    def show_case(request: Request, case_id: str) -> Response:
        """Return the page of a case."""
        case = service.find(case_id)
        context = _make_context(request, service)
        has_browser = service.browser is not None
        return HTMLResponse(render_case(context, case, service.worker, has_browser=has_browser))

    @app.get("/events")
    async def stream_progress(case: str = "", batch: str = "") -> Response:
        """Return the progress of a case, a batch or all cases as server-sent events."""
        chosen = [service.find(case)] if case else None
        if chosen is None and batch:
            chosen = service.list_batch(batch)
        return StreamingResponse(_iter_events(service, chosen), media_type="text/event-stream")


async def _iter_events(
    service: DeskService, chosen: list[CaseRecord] | None
) -> AsyncIterator[str]:
    """Yield the progress of cases whenever it changes, until all have ended."""
    known, silent_s = "", 0.0
    cases = [each for each in chosen or service.store.select() if each.stage not in ENDED]
    while True:
        rows = [service.worker.describe(case).to_json(case) for case in cases]
        text = json.dumps(rows)
        if text != known:
            known, silent_s = text, 0.0
            yield f"data: {text}\n\n"
        elif silent_s >= _BEAT_S:
            silent_s = 0.0
            yield ": beat\n\n"
        if all(case.stage in ENDED or case.is_deleted for case in cases):
            yield "event: end\ndata: \n\n"
            return
        await asyncio.sleep(_POLL_S)
        silent_s += _POLL_S


def _add_forms(app: FastAPI, service: DeskService) -> None:
    async def read_form(request: Request, n_files: int = 0) -> FormData:
        form = await request.form(max_files=n_files, max_fields=10, max_part_size=_LONGEST_TEXT * 4)
        service.access.require_form_token(request.state.identity, form.get("form_token"))
        return form

    @app.post("/cases")
    async def add_cases(request: Request) -> Response:
        """Take uploaded clips, and those of a folder, as new cases."""
        form = await read_form(request, _MOST_CLIPS)
        reviewers = str(form.get("reviewers", ""))
        if reviewers not in service.sets:
            raise _build_invalidity("Choose a reviewer set of the page")
        parts = [part for part in form.getlist("clips") if isinstance(part, UploadFile)]
        uploads = [(part.filename, part.file) for part in parts if part.filename]
        folder = str(form.get("folder", ""))
        if not uploads and not folder:
            raise _build_invalidity("Choose at least one video file")
        batch = secrets.token_hex(8) if folder or len(uploads) > 1 else ""
        facts = {"reviewers": reviewers, "person": request.state.person, "batch": batch}
        on_disk = open_clips(service.settings.roots, folder, most=_MOST_CLIPS)
        path = f"/batches/{batch}/"
        for name, file in chain(on_disk, uploads):
            with file:
                case = await asyncio.to_thread(service.store.add, name or "", file, **facts)
            service.worker.add(case)
            path = path if batch else f"/cases/{case.id}/"
        return RedirectResponse(path, _SEE_OTHER)

    @app.post("/cases/{case_id}/entries")
    async def add_entry(request: Request, case_id: str) -> Response:
        """Store a note or a verdict of a person."""
        form, case = await read_form(request), service.find(case_id)
        text, verdict = str(form.get("text", "")).strip()[:_LONGEST_TEXT], form.get("verdict")
        fields = {"text": text, "verdict": verdict}
        if verdict in VERDICTS:
            service.store.record(case, "verdict", request.state.person, **fields)
        elif text:
            service.store.record(case, "note", request.state.person, text=text)
        else:
            raise _build_invalidity("Write a note, or choose a verdict")
        return RedirectResponse(f"/cases/{case.id}/#case-file", _SEE_OTHER)

    @app.post("/cases/{case_id}/again")
    async def ask_again(request: Request, case_id: str) -> Response:
        """Put a case with missing answers into the queue again."""
        await read_form(request)
        case = service.find(case_id)
        if case.stage in ENDED:
            service.store.record(case, "again", request.state.person)
            service.worker.add(case)
        return RedirectResponse(f"/cases/{case.id}/", _SEE_OTHER)

    @app.post("/cases/{case_id}/delete")
    async def delete_case(request: Request, case_id: str) -> Response:
        """Delete a case with its files."""
        await read_form(request)
        service.worker.delete(service.find(case_id), request.state.person)
        return RedirectResponse("/", _SEE_OTHER)


def _add_downloads(app: FastAPI, service: DeskService) -> None:
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
                raise _build_absence("No PDF can be made here. Print the page in your browser")
            if not page.with_name(PDF).is_file():
                problem = await asyncio.to_thread(write_pdf, page, browser=service.browser)
                if problem:
                    raise _build_absence(f"No PDF: {problem}. Print the page in your browser")
        return _send_file(case, EVIDENCE, PDF)

    @app.get("/cases/{case_id}/original")
    def download_original(case_id: str) -> Response:
        """Return the original file."""
        case = service.find(case_id)
        kind = "application/octet-stream"
        return FileResponse(case.original, filename=case.name, media_type=kind, headers=_NO_SCRIPTS)


def _add_case_files(app: FastAPI, service: DeskService) -> None:
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
        raise _build_absence("There is no such file")
    headers = {} if path == PAGE else _NO_SCRIPTS
    return FileResponse(folder / path, media_type=kind, headers=headers)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestRefusedError)
    async def refuse(request: Request, error: RequestRefusedError) -> Response:
        return build_refusal(request.scope, error)

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        refusal = RequestRefusedError(error.status_code, "http", str(error.detail))
        return await refuse(request, refusal)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, _error: RequestValidationError) -> Response:
        return await refuse(request, _build_invalidity("The request is malformed"))

    @app.exception_handler(UnreelError)
    async def refuse_known(request: Request, error: UnreelError) -> Response:
        status = 500
        return await refuse(request, RequestRefusedError(status, "failed", str(error)))


def _make_context(request: Request, service: DeskService) -> PageContext:
    return PageContext(
        person=request.state.person,
        form_token=service.access.make_form_token(request.state.identity),
        settings=service.settings,
    )


def _read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise _build_invalidity("Write the date as YYYY-MM-DD") from None


def _build_absence(message: str) -> RequestRefusedError:
    status = 404
    return RequestRefusedError(status, "not-found", message)


def _build_invalidity(message: str) -> RequestRefusedError:
    status = 422
    return RequestRefusedError(status, "invalid", message)
