"""FastAPI application of the desk: sessions, the start page, batches, new clips and progress."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from unreel.core.errors import UnreelError
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.desk import case_routes
from unreel.desk.access import (
    LOGIN,
    DeskMiddleware,
    build_refusal_response,
    get_session_cookie_name,
)
from unreel.desk.allowed_folders import iter_folder_clips, list_clip_folders
from unreel.desk.case_store import CaseFilter, CaseRecord
from unreel.desk.pages import MAX_LISTED, STATIC_FILES, render_case_list_page, render_refusal_page
from unreel.desk.service import (
    MAX_CLIPS,
    SEE_OTHER,
    Batch,
    DeskService,
    Form,
    Service,
    find_case,
    list_batch,
)
from unreel.desk.settings import DeskSettings
from unreel.desk.worker import CaseReviewWorker
from unreel.pages.html_page import read_static_file
from unreel.webapp.refusals import InvalidRequestError, RequestRefusedError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_POLL_S = 0.5
_BEAT_S = 15.0
_MAX_STREAMS = 50
"""Maximum number of concurrent progress streams per person."""
_ROUTES = APIRouter()


def create_desk_app(
    settings: DeskSettings,
    *,
    environment: EnvironmentSettings | None = None,
    trusted: bool = False,
    on_link: Callable[[str], None] = lambda _path: None,
) -> FastAPI:
    """Return the FastAPI application of the desk; reviews start and stop with its lifespan.

    The arguments are those of `DeskService`; the environment is read if it is missing.
    """
    service = DeskService(
        settings, environment or read_environment_settings(), trusted=trusted, on_link=on_link
    )

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        yield
        await asyncio.to_thread(service.close)

    errors = (UnreelError, OSError, HTTPException, RequestValidationError)
    app = FastAPI(
        title="unreel desk",
        lifespan=live,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        exception_handlers=dict.fromkeys(errors, _respond_to_error),
    )
    app.state.desk = service
    app.add_middleware(DeskMiddleware, authenticator=service.access, settings=settings)
    app.include_router(_ROUTES)
    app.include_router(case_routes.ROUTES)
    return app


async def _respond_to_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = RequestRefusedError(error.status_code, "http", str(error.detail))
    elif isinstance(error, RequestValidationError):
        error = InvalidRequestError("Write dates as YYYY-MM-DD")
    elif not isinstance(error, RequestRefusedError):
        problem = getattr(error, "strerror", None) or str(error)  # without the path
        error = RequestRefusedError(500, "failed", problem)
    return build_refusal_response(request.scope, error)


@_ROUTES.get(LOGIN)
async def open_session(request: Request, desk: Service, token: str = "") -> Response:
    """Exchange the one-time token for a session cookie; do nothing for a person with a session."""
    response: Response = RedirectResponse("/", SEE_OTHER)
    if hasattr(request.state, "person"):
        return response
    session = desk.access.open_session(token)
    if session is None:
        raise RequestRefusedError(
            401, "unauthorised", "The link was used before. `unreel desk` has printed a new one"
        )
    if request.headers.get("sec-fetch-site") == "cross-site":
        # The browser opened a file with the link: it sends the cookie only to pages that this page opens.
        response = HTMLResponse('<!doctype html><meta http-equiv="refresh" content="0; url=/">')
    name = get_session_cookie_name(request.scope)
    response.set_cookie(name, session, httponly=True, samesite="strict")
    return response


@_ROUTES.post("/logout")
async def close_session(request: Request, desk: Service, _form: Form) -> Response:
    """End the session of the person, and forget its cookie."""
    desk.access.close_session(request.state.identity)
    response = HTMLResponse(render_refusal_page("signed out", "You are signed out"))
    response.delete_cookie(get_session_cookie_name(request.scope), httponly=True, samesite="strict")
    return response


@_ROUTES.get("/static/{name}")
async def read_static(name: str) -> Response:
    """Return a style or a script of the pages."""
    if name not in STATIC_FILES:
        raise RequestRefusedError(404, "not-found", "The file does not exist")
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    headers = {"cache-control": "max-age=300"}
    return Response(str(read_static_file(name)), media_type=kind, headers=headers)


@_ROUTES.get("/")
def show_start_page(
    request: Request, desk: Service, case_filter: Annotated[CaseFilter, Depends()]
) -> Response:
    """Return the start page: a form for clips, and the cases that match the filter."""
    cases = desk.store.select()
    page = render_case_list_page(
        "list",
        list(filter(case_filter.matches, cases)),
        desk.worker,
        case_filter=case_filter,
        people=sorted(set().union(*(case.people for case in cases))),
        sets=[*desk.sets.values()],
        folders=list_clip_folders(desk.settings.roots),
        batch="",
        n_trash=desk.store.count_trash(),
        **desk.build_page_values(request),
    )
    return HTMLResponse(page)


@_ROUTES.get("/batches/{batch}/")
def show_batch(request: Request, desk: Service, batch: str, cases: Batch) -> Response:
    """Return the page of a batch."""
    values = desk.build_page_values(request) | {"batch": batch}
    return HTMLResponse(render_case_list_page("batch", cases, desk.worker, **values))


@_ROUTES.get("/batches/{batch}/bundle.zip")
def download_batch(request: Request, desk: Service, batch: str, cases: Batch) -> Response:
    """Return the custody bundle of a batch."""
    return case_routes.stream_bundle(desk, cases[::-1], f"batch-{batch}", request)


@_ROUTES.post("/cases")
async def add_cases(request: Request, desk: Service, form: Form) -> Response:
    """Store uploaded clips, and those of a folder, as new cases."""
    path = await asyncio.to_thread(_store_clips, desk, form, request.state.person)
    return RedirectResponse(path, SEE_OTHER)


def _store_clips(desk: DeskService, form: FormData, person: str) -> str:
    """Store the clips of a form as new cases, and return the path of the page that lists them."""
    reviewers, folder = (str(form.get(name, "")) for name in ("reviewers", "folder"))
    parts = [part for part in form.getlist("clips") if isinstance(part, UploadFile)]
    uploads = [(part.filename, part.file) for part in parts if part.filename]
    if reviewers not in desk.sets or not (uploads or folder):
        raise InvalidRequestError("Choose a reviewer set and at least one video file")
    batch = secrets.token_hex(8) if folder or len(uploads) > 1 else ""
    path = f"/batches/{batch}/"
    folder_clips = iter_folder_clips(desk.settings.roots, folder, limit=MAX_CLIPS)
    for name, file in chain(folder_clips, uploads):
        with file:
            case = desk.store.add(name, file, reviewers=reviewers, person=person, batch=batch)
        desk.worker.add(case)
        path = path if batch else f"/cases/{case.id}/"
    return path


@_ROUTES.get("/events")
async def stream_progress(
    request: Request, desk: Service, case: str = "", batch: str = ""
) -> Response:
    """Return the progress of a case, a batch or the newest cases as server-sent events."""
    if case:
        cases = [await find_case(case, desk)]
    else:
        cases = list_batch(batch, desk) if batch else desk.store.select()[:MAX_LISTED]
    identity = request.state.identity
    if desk.n_streams[identity] >= _MAX_STREAMS:
        raise RequestRefusedError(429, "busy", "Close other pages of the desk first")
    return _ProgressStream(desk, cases, identity)


class _ProgressStream(StreamingResponse):
    """Stream of progress that counts as one of the person's streams from now until its end."""

    def __init__(self, desk: DeskService, cases: list[CaseRecord], identity: str) -> None:
        is_open = partial(desk.access.has_session, identity)
        events = _iter_progress_events(desk.worker, cases, is_open)
        super().__init__(events, media_type="text/event-stream")
        self._n_streams, self._identity = desk.n_streams, identity
        self._n_streams[identity] += 1

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._n_streams[self._identity] -= 1


async def _iter_progress_events(
    worker: CaseReviewWorker, cases: list[CaseRecord], is_open: Callable[[], bool]
) -> AsyncIterator[str]:
    """Yield server-sent events with the progress of each changed case, until all cases or the session have ended."""
    sent: dict[str, dict[str, Any]] = {}
    silent_s = 0.0
    while cases and is_open():
        # Determined before the rows, so that the last row of a case shows its end.
        unfinished = [case for case in cases if not (case.is_ended or case.is_deleted)]
        rows = {
            case.id: {
                "id": case.id,
                "stage": case.stage,
                "text": worker.describe(case),
                "sentence": case.sentence,
            }
            for case in cases
        }
        changed = [row for name, row in rows.items() if sent.get(name) != row]
        sent, cases, silent_s = rows, unfinished, silent_s + _POLL_S
        if changed or silent_s >= _BEAT_S:
            silent_s = 0.0
            yield f"data: {json.dumps(changed)}\n\n"
        if cases:
            await asyncio.sleep(_POLL_S)
    yield "event: end\ndata: \n\n"
