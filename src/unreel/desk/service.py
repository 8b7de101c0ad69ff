"""Open components of one desk: settings, cases, worker and access control, for its routes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NoReturn

from fastapi import Request
from starlette.datastructures import FormData

from unreel.core.settings import EnvironmentSettings
from unreel.desk.access import DeskAuthenticator
from unreel.desk.case_store import CaseFilter, CaseRecord, CaseStore
from unreel.desk.reviewer_sets import open_reviewer_set
from unreel.desk.settings import DeskSettings
from unreel.desk.signature import sign_manifest
from unreel.desk.worker import CaseReviewWorker
from unreel.media.access import open_media_reader
from unreel.report.review.browser_pdf import find_chromium_browser
from unreel.webapp.refusals import RequestRefusedError

SEE_OTHER: Final = 303
LONGEST_TEXT: Final = 10_000
"""Characters of a note."""


class DeskService:
    """Open components of one desk that its routes share: settings, cases, worker and access control."""

    def __init__(
        self,
        settings: DeskSettings,
        environment: EnvironmentSettings,
        *,
        trusted: bool,
        on_link: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.sets = {each.name: open_reviewer_set(each, environment) for each in settings.reviewers}
        key = settings.signing_key
        self.sign = None if key is None else partial(sign_manifest, key=key)
        if self.sign is not None:
            self.sign(b"")
        self.access = DeskAuthenticator(settings.proxy, on_link)
        self.store = CaseStore(settings.cases)
        reading = partial(
            open_media_reader, environment, trusted=trusted, at_once=("probe", "frames")
        )
        self.worker = CaseReviewWorker(self.store, self.sets, settings, reading)
        self.browser = find_chromium_browser()
        self.printing = asyncio.Lock()

    def find(self, case_id: str) -> CaseRecord:
        """Return the case with the id `case_id`; refuse the request if there is no such case."""
        case = self.store.find(case_id)
        if case is None:
            raise_not_found("There is no such case. It may have been deleted")
        return case

    def list_batch(self, batch: str) -> list[CaseRecord]:
        """Return the cases that were added together as `batch`; refuse the request if there are none."""
        cases = self.store.select(CaseFilter(batch=batch)) if batch else []
        if not cases:
            raise_not_found("There is no such batch. Its cases may have been deleted")
        return cases

    @asynccontextmanager
    async def read_form(self, request: Request, n_files: int = 0) -> AsyncIterator[FormData]:
        """Yield the fields of a form whose token is valid; its files are closed at the end."""
        limits = {"max_files": n_files, "max_fields": 10, "max_part_size": LONGEST_TEXT * 4}
        async with request.form(**limits) as form:
            self.access.require_form_token(request.state.identity, form.get("form_token"))
            yield form

    def build_page_values(self, request: Request) -> dict[str, Any]:
        """Return the values that every page of a person needs."""
        token = self.access.make_form_token(request.state.identity)
        return {"person": request.state.person, "form_token": token, "settings": self.settings}

    def close(self) -> None:
        """Stop the worker, and release the folder of cases for another process."""
        self.worker.close()
        self.store.close()


def raise_not_found(message: str) -> NoReturn:
    """Raise the error for a request for something that does not exist (HTTP status 404)."""
    raise RequestRefusedError(404, "not-found", message)


def raise_invalid_request(message: str) -> NoReturn:
    """Raise the error for a request with invalid values (HTTP status 422)."""
    raise RequestRefusedError(422, "invalid", message)
