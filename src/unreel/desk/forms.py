"""Forms of the desk: new clips, notes, verdicts, questions asked again, deletion."""

import asyncio
import secrets
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


async def read_form(request: Request, service: DeskService, n_files: int = 0) -> FormData:
    """Return the fields of a form whose token is valid."""
    form = await request.form(max_files=n_files, max_fields=10, max_part_size=_LONGEST_TEXT * 4)
    service.access.require_form_token(request.state.identity, form.get("form_token"))
    return form


def add_clip_form(app: FastAPI, service: DeskService) -> None:
    """Add the route of the form for clips."""

    @app.post("/cases")
    async def add_cases(request: Request) -> Response:
        """Take uploaded clips, and those of a folder, as new cases."""
        form = await read_form(request, service, _MOST_CLIPS)
        reviewers = str(form.get("reviewers", ""))
        if reviewers not in service.sets:
            refuse_invalid("Choose a reviewer set of the page")
        parts = [part for part in form.getlist("clips") if isinstance(part, UploadFile)]
        uploads = [(part.filename, part.file) for part in parts if part.filename]
        folder = str(form.get("folder", ""))
        if not uploads and not folder:
            refuse_invalid("Choose at least one video file")
        batch = secrets.token_hex(8) if folder or len(uploads) > 1 else ""
        facts = {"reviewers": reviewers, "person": request.state.person, "batch": batch}
        on_disk = open_clips(service.settings.roots, folder, most=_MOST_CLIPS)
        path = f"/batches/{batch}/"
        for name, file in chain(on_disk, uploads):
            with file:
                case = await asyncio.to_thread(service.store.add, name or "", file, **facts)
            service.worker.add(case)
            path = path if batch else f"/cases/{case.id}/"
        return RedirectResponse(path, SEE_OTHER)


def add_case_forms(app: FastAPI, service: DeskService) -> None:
    """Add the routes of the forms on the page of a case."""

    @app.post("/cases/{case_id}/entries")
    async def add_entry(request: Request, case_id: str) -> Response:
        """Store a note or a verdict of a person."""
        form, case = await read_form(request, service), service.find(case_id)
        text = str(form.get("text", "")).replace("\r\n", "\n").strip()
        text, verdict = sanitise_lines(text)[:_LONGEST_TEXT], str(form.get("verdict", ""))
        if not text and verdict not in VERDICTS:
            refuse_invalid("Write a note, or choose a verdict")
        service.store.record(case, "entry", request.state.person, text=text, verdict=verdict)
        return RedirectResponse(f"/cases/{case.id}/#case-file", SEE_OTHER)

    @app.post("/cases/{case_id}/again")
    async def ask_again(request: Request, case_id: str) -> Response:
        """Put a case with missing answers into the queue again."""
        await read_form(request, service)
        case = service.find(case_id)
        if case.stage in ENDED:
            service.store.record(case, "again", request.state.person)
            service.worker.add(case)
        return RedirectResponse(f"/cases/{case.id}/", SEE_OTHER)

    @app.post("/cases/{case_id}/delete")
    async def delete_case(request: Request, case_id: str) -> Response:
        """Delete a case with its files."""
        await read_form(request, service)
        service.worker.delete(service.find(case_id), request.state.person)
        return RedirectResponse("/", SEE_OTHER)
