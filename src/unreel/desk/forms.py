"""Forms of the desk: new clips, notes, verdicts, questions asked again, deletion."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from unreel.core.safe_text import sanitise_lines
from unreel.desk.case_state import ENDED, VERDICTS
from unreel.desk.folders import open_clips
from unreel.desk.service import DeskService, refuse_invalid

SEE_OTHER: Final = 303
_MOST_CLIPS: Final = 500
_LONGEST_TEXT: Final = 10_000


@asynccontextmanager
async def read_form(
    request: Request, service: DeskService, n_files: int = 0
) -> AsyncIterator[FormData]:
    """Yield the fields of a form whose token is valid; its files are closed at the end."""
    limits = {"max_files": n_files, "max_fields": 10, "max_part_size": _LONGEST_TEXT * 4}
    async with request.form(**limits) as form:
        service.access.require_form_token(request.state.identity, form.get("form_token"))
        yield form


def add_clip_form(app: FastAPI, service: DeskService) -> None:
    """Add the route of the form for clips."""

    @app.post("/cases")
    async def add_cases(request: Request) -> Response:
        """Take uploaded clips, and those of a folder, as new cases."""
        async with read_form(request, service, _MOST_CLIPS) as form:
            return RedirectResponse(await store_clips(form, request.state.person), SEE_OTHER)

    async def store_clips(form: FormData, person: str) -> str:
        """Return the path of the page of the new cases."""
        reviewers, folder = (str(form.get(name, "")) for name in ("reviewers", "folder"))
        parts = [part for part in form.getlist("clips") if isinstance(part, UploadFile)]
        uploads = [(part.filename or "", part.file) for part in parts if part.filename]
        if reviewers not in service.sets or not (uploads or folder):
            refuse_invalid("Choose a reviewer set and at least one video file")
        batch = secrets.token_hex(8) if folder or len(uploads) > 1 else ""
        facts = {"reviewers": reviewers, "person": person, "batch": batch}
        path = f"/batches/{batch}/"
        on_disk = open_clips(service.settings.roots, folder, most=_MOST_CLIPS)
        for name, file in chain(on_disk, uploads):
            with file:
                case = await asyncio.to_thread(service.store.add, name, file, **facts)
            service.worker.add(case)
            path = path if batch else f"/cases/{case.id}/"
        return path


def add_case_forms(app: FastAPI, service: DeskService) -> None:
    """Add the routes of the forms on the page of a case."""

    @app.post("/cases/{case_id}/entries")
    async def add_entry(request: Request, case_id: str) -> Response:
        """Store a note or a verdict of a person."""
        async with read_form(request, service) as form:
            text, verdict = (str(form.get(name, "")) for name in ("text", "verdict"))
        case = service.find(case_id)
        text = sanitise_lines(text.replace("\r\n", "\n").strip())[:_LONGEST_TEXT]
        if not text and verdict not in VERDICTS:
            refuse_invalid("Write a note, or choose a verdict")
        service.store.record(case, "entry", request.state.person, text=text, verdict=verdict)
        return RedirectResponse(f"/cases/{case.id}/#case-file", SEE_OTHER)

    @app.post("/cases/{case_id}/again")
    async def ask_again(request: Request, case_id: str) -> Response:
        """Put a case with missing answers into the queue again."""
        async with read_form(request, service):
            case = service.find(case_id)
        if case.stage in ENDED:
            service.store.record(case, "again", request.state.person)
            service.worker.add(case)
        return RedirectResponse(f"/cases/{case.id}/", SEE_OTHER)

    @app.post("/cases/{case_id}/delete")
    async def delete_case(request: Request, case_id: str) -> Response:
        """Delete a case with its files."""
        async with read_form(request, service):
            service.worker.delete(service.find(case_id), request.state.person)
        return RedirectResponse("/", SEE_OTHER)
