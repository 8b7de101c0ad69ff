"""FastAPI application of the desk: sessions, lists, new clips, progress, and the routes of cases."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from itertools import chain
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from unreel.core.errors import UnreelError
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.desk.access import (
    LOGIN,
    DeskMiddleware,
    build_refusal_response,
    get_session_cookie_name,
)
from unreel.desk.allowed_folders import iter_folder_clips, list_clip_folders
from unreel.desk.case_routes import add_case_file_route, add_case_form_routes, stream_bundle
from unreel.desk.case_store import CaseFilter, CaseRecord
from unreel.desk.pages import MOST_LISTED, STATIC_FILES, render_case_list_page
from unreel.desk.service import SEE_OTHER, DeskService, raise_invalid_request, raise_not_found
from unreel.desk.settings import DeskSettings
from unreel.desk.worker import CaseReviewWorker
from unreel.pages.html_page import read_static_file
from unreel.webapp.refusals import RequestRefusedError

_POLL_S: Final = 0.5
_BEAT_S: Final = 15.0
_MOST_CLIPS: Final = 500
_MOST_STREAMS: Final = 50
"""Streams of progress of one person."""


def create_desk_app(
    settings: DeskSettings,
    *,
    environment: EnvironmentSettings | None = None,
    trusted: bool = False,
    on_link: Callable[[str], None] = lambda _path: None,
) -> FastAPI:
    """Return the FastAPI application of the desk; reviews start and stop with its lifespan.

    Args:
        settings: Content of `desk.toml`.
        environment: Settings of the environment; read if missing.
        trusted: Whether files are opened in this process.
        on_link: Callback that receives the path of each further one-time link.
    """
    service = DeskService(
        settings, environment or read_environment_settings(), trusted=trusted, on_link=on_link
    )

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="unreel desk", lifespan=live, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.desk = service
    app.add_middleware(DeskMiddleware, access=service.access, settings=settings)
    for add_routes in (
        _add_error_handlers,
        _add_login_and_static_routes,
        _add_page_routes,
        _add_clip_form,
        _add_progress,
    ):
        add_routes(app, service)
    add_case_form_routes(app, service)
    add_case_file_route(app, service)
    return app


def _add_login_and_static_routes(app: FastAPI, service: DeskService) -> None:
    @app.get(LOGIN)
    async def open_session(request: Request, token: str = "") -> Response:
        """Exchange the one-time token for a session cookie."""
        response = RedirectResponse("/", SEE_OTHER)
        headers = {name: value.decode("latin-1") for name, value in request.headers.raw}
        if service.access.identify(request.scope, headers) is not None:
            return response
        session = service.access.open_session(token)
        if session is None:
            message = "The link was used before. `unreel desk` has printed a new one"
            raise RequestRefusedError(401, "unauthorised", message)
        response.set_cookie(
            get_session_cookie_name(request.scope),
            session,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return response

    @app.get("/static/{name}")
    async def read_static(name: str) -> Response:
        """Return a style or a script of the pages."""
        if name not in STATIC_FILES:
            raise_not_found("There is no such file")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        headers = {"cache-control": "max-age=300"}
        return Response(str(read_static_file(name)), media_type=kind, headers=headers)


def _add_page_routes(app: FastAPI, service: DeskService) -> None:
    @app.get("/")
    def show_list(
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
            since=_parse_date(since),
            until=_parse_date(until),
            verdict=verdict,
            person=person,
        )
        cases = service.store.select()
        page = render_case_list_page(
            "list",
            list(filter(chosen.matches, cases)),
            service.worker,
            chosen=chosen,
            people=sorted(set().union(*(case.people for case in cases))),
            sets=[*service.sets.values()],
            folders=list_clip_folders(service.settings.roots),
            batch="",
            **service.build_page_values(request),
        )
        return HTMLResponse(page)

    @app.get("/batches/{batch}/")
    def show_batch(request: Request, batch: str) -> Response:
        """Return the page of a batch."""
        values = service.build_page_values(request) | {"batch": batch}
        return HTMLResponse(
            render_case_list_page("batch", service.list_batch(batch), service.worker, **values)
        )

    @app.get("/batches/{batch}/bundle.zip")
    def download_batch(request: Request, batch: str) -> Response:
        """Return the custody bundle of a batch."""
        return stream_bundle(service, service.list_batch(batch)[::-1], f"batch-{batch}", request)


def _add_clip_form(app: FastAPI, service: DeskService) -> None:
    @app.post("/cases")
    async def add_cases(request: Request) -> Response:
        """Take uploaded clips, and those of a folder, as new cases."""
        async with service.read_form(request, _MOST_CLIPS) as form:
            path = await asyncio.to_thread(store_clips, form, request.state.person)
        return RedirectResponse(path, SEE_OTHER)

    def store_clips(form: FormData, person: str) -> str:
        """Return the path of the page of the new cases."""
        reviewers, folder = (str(form.get(name, "")) for name in ("reviewers", "folder"))
        parts = [part for part in form.getlist("clips") if isinstance(part, UploadFile)]
        uploads = [(part.filename, part.file) for part in parts if part.filename]
        if reviewers not in service.sets or not (uploads or folder):
            raise_invalid_request("Choose a reviewer set and at least one video file")
        batch = secrets.token_hex(8) if folder or len(uploads) > 1 else ""
        facts = {"reviewers": reviewers, "person": person, "batch": batch}
        path = f"/batches/{batch}/"
        on_disk = iter_folder_clips(service.settings.roots, folder, most=_MOST_CLIPS)
        for name, file in chain(on_disk, uploads):
            with file:
                case = service.store.add(name, file, **facts)
            service.worker.add(case)
            path = path if batch else f"/cases/{case.id}/"
        return path


def _add_progress(app: FastAPI, service: DeskService) -> None:
    n_streams: Counter[str] = Counter()

    @app.get("/events")
    async def stream_progress(request: Request, case: str = "", batch: str = "") -> Response:
        """Return the progress of a case, a batch or the newest cases as server-sent events."""
        if case or batch:
            chosen = [service.find(case)] if case else service.list_batch(batch)
        else:
            chosen = service.store.select()[:MOST_LISTED]
        if n_streams[request.state.identity] >= _MOST_STREAMS:
            raise RequestRefusedError(429, "busy", "Close other pages of the desk first")
        events = count_stream(request.state.identity, _iter_progress_events(service.worker, chosen))
        return StreamingResponse(events, media_type="text/event-stream")

    async def count_stream(identity: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
        n_streams[identity] += 1
        try:
            async for event in events:
                yield event
        finally:
            n_streams[identity] -= 1


async def _iter_progress_events(
    worker: CaseReviewWorker, cases: list[CaseRecord]
) -> AsyncIterator[str]:
    """Yield server-sent events with the progress of each changed case, until all cases have ended."""
    known: dict[str, Any] = {}
    silent_s = 0.0
    while True:
        # Before the snapshot: the last row of a case is that of its end.
        unfinished = [case for case in cases if not (case.is_ended or case.is_deleted)]
        now = {case.id: (worker.describe(case), case.sentence) for case in cases}
        rows = [
            {"id": name, "stage": progress.stage, "text": progress.text, "sentence": sentence}
            for name, (progress, sentence) in now.items()
            if known.get(name) != now[name]
        ]
        known, silent_s = now, silent_s + _POLL_S
        if rows or silent_s >= _BEAT_S:
            silent_s = 0.0
            yield f"data: {json.dumps(rows)}\n\n"
        cases = unfinished
        if not cases:
            yield "event: end\ndata: \n\n"
            return
        await asyncio.sleep(_POLL_S)


def _add_error_handlers(app: FastAPI, _service: DeskService) -> None:
    @app.exception_handler(UnreelError)
    async def refuse(request: Request, error: UnreelError) -> Response:
        if not isinstance(error, RequestRefusedError):
            error = RequestRefusedError(500, "failed", str(error))
        return build_refusal_response(request.scope, error)

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        refusal = RequestRefusedError(error.status_code, "http", str(error.detail))
        return build_refusal_response(request.scope, refusal)


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise_invalid_request("Write the date as YYYY-MM-DD")
