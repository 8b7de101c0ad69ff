"""FastAPI application of the desk: pages, forms, files, progress and bundles."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from unreel.core.errors import UnreelError
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.desk.access import LOGIN, DeskGate, build_refusal, name_cookie
from unreel.desk.case_state import ENDED, CaseRecord
from unreel.desk.cases import CaseFilter
from unreel.desk.downloads import add_case_files, add_downloads
from unreel.desk.folders import list_folders
from unreel.desk.forms import SEE_OTHER, add_case_forms, add_clip_form
from unreel.desk.pages import STATIC_FILES, render_case, render_cases
from unreel.desk.service import DeskService, refuse_absent, refuse_invalid
from unreel.desk.settings import DeskSettings
from unreel.pages.page import read_static_file
from unreel.webapp.refusals import RequestRefusedError

_POLL_S: Final = 0.5
_BEAT_S: Final = 15.0
_INVALID: Final = 422


def create_desk(
    settings: DeskSettings,
    *,
    environment: EnvironmentSettings | None = None,
    trusted: bool = False,
    on_link: Callable[[str], None] = lambda _path: None,
) -> FastAPI:
    """Return the application; its work begins and ends with its lifespan.

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
    app.add_middleware(DeskGate, access=service.access, settings=settings)
    _add_errors(app)
    _add_entrance(app, service)
    _add_lists(app, service)
    add_clip_form(app, service)
    add_case_forms(app, service)
    add_downloads(app, service)
    add_case_files(app, service)
    return app


def _add_entrance(app: FastAPI, service: DeskService) -> None:
    @app.get(LOGIN)
    async def open_session(request: Request, token: str = "") -> Response:
        """Exchange the one-time token for a session cookie."""
        response = RedirectResponse("/", SEE_OTHER)
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
            refuse_absent("There is no such file")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        headers = {"cache-control": "max-age=300"}
        return Response(str(read_static_file(name)), media_type=kind, headers=headers)


def _add_lists(app: FastAPI, service: DeskService) -> None:
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
            since=_read_date(since),
            until=_read_date(until),
            verdict=verdict,
            person=person,
        )
        everything = service.store.select()
        page = render_cases(
            "list",
            list(filter(chosen.matches, everything)),
            service.worker,
            chosen=chosen,
            people=sorted(set().union(*(case.people for case in everything))),
            sets=[*service.sets.values()],
            folders=list_folders(service.settings.roots),
            batch="",
            **describe_person(request, service),
        )
        return HTMLResponse(page)

    @app.get("/batches/{batch}/")
    def show_batch(request: Request, batch: str) -> Response:
        """Return the page of a batch."""
        cases = service.list_batch(batch)
        values = {"batch": batch, "added_at": cases[-1].added_at}
        values |= describe_person(request, service)
        return HTMLResponse(render_cases("batch", cases, service.worker, **values))

    @app.get("/cases/{case_id}/")
    def show_case(request: Request, case_id: str) -> Response:
        """Return the page of a case."""
        values = describe_person(request, service) | {"has_browser": service.browser is not None}
        return HTMLResponse(render_case(service.find(case_id), service.worker, **values))

    @app.get("/events")
    async def stream_progress(case: str = "", batch: str = "") -> Response:
        """Return the progress of a case, a batch or all cases as server-sent events."""
        if case or batch:
            chosen = [service.find(case)] if case else service.list_batch(batch)
        else:
            chosen = service.store.select()
        return StreamingResponse(_iter_events(service, chosen), media_type="text/event-stream")


async def _iter_events(service: DeskService, cases: list[CaseRecord]) -> AsyncIterator[str]:
    """Yield the progress of the cases that changed, until all have ended."""
    known: dict[str, Any] = {}
    silent_s = 0.0
    while True:
        now = {case.id: (service.worker.describe(case), case.sentence) for case in cases}
        rows = [
            {"id": name, "stage": progress.stage, "text": progress.text, "sentence": sentence}
            for name, (progress, sentence) in now.items()
            if known.get(name) != now[name]
        ]
        known, silent_s = now, silent_s + _POLL_S
        if rows or silent_s >= _BEAT_S:
            silent_s = 0.0
            yield f"data: {json.dumps(rows)}\n\n"
        if all(case.stage in ENDED or case.is_deleted for case in cases):
            yield "event: end\ndata: \n\n"
            return
        await asyncio.sleep(_POLL_S)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestRefusedError)
    async def refuse(request: Request, error: RequestRefusedError) -> Response:
        return build_refusal(request.scope, error)

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        refusal = RequestRefusedError(error.status_code, "http", str(error.detail))
        return await refuse(request, refusal)

    @app.exception_handler(RequestValidationError)
    async def refuse_malformed(request: Request, _error: RequestValidationError) -> Response:
        refusal = RequestRefusedError(_INVALID, "invalid", "The request is malformed")
        return await refuse(request, refusal)

    @app.exception_handler(UnreelError)
    async def refuse_known(request: Request, error: UnreelError) -> Response:
        status = 500
        return await refuse(request, RequestRefusedError(status, "failed", str(error)))


def describe_person(request: Request, service: DeskService) -> dict[str, Any]:
    """Return the values that every page of a person needs."""
    token = service.access.make_form_token(request.state.identity)
    return {"person": request.state.person, "form_token": token, "settings": service.settings}


def _read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        refuse_invalid("Write the date as YYYY-MM-DD")
