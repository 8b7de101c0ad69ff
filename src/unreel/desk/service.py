"""Open components of one desk, and the parts of requests that its routes share as FastAPI dependencies."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import FormData

from unreel.core.settings import EnvironmentSettings
from unreel.desk.access import DeskAuthenticator
from unreel.desk.case_store import CaseFilter, CaseRecord, CaseStore
from unreel.desk.reviewer_sets import open_reviewer_set
from unreel.desk.settings import DeskSettings
from unreel.desk.signature import request_timestamp, sign_manifest
from unreel.desk.worker import CaseReviewWorker
from unreel.media.access import open_media_reader
from unreel.report.review.browser_pdf import find_chromium_browser
from unreel.webapp.refusals import RequestRefusedError

SEE_OTHER = 303
MAX_CLIPS = 500
"""Maximum number of clips per form."""
MAX_TEXT = 10_000
"""Maximum number of characters of a note."""


class DeskService:
    """Open components of one desk: settings, cases, worker and access control.

    Args:
        settings: Content of `desk.toml`.
        environment: Settings of the environment.
        trusted: Whether files are opened in this process.
        on_link: Callback that receives the path of each further one-time link.
    """

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
        url = settings.timestamp_url
        self.stamp = None if url is None else partial(request_timestamp, url=url)
        self.access = DeskAuthenticator(settings.proxy, on_link)
        self.store = CaseStore(settings.cases)
        open_reader = partial(
            open_media_reader, environment, trusted=trusted, at_once=("probe", "frames")
        )
        self.worker = CaseReviewWorker(self.store, self.sets, settings, open_reader)
        self.browser = find_chromium_browser()
        self.printing = asyncio.Lock()
        self.n_streams: Counter[str] = Counter()
        """Number of open streams of progress by the identity of the person."""

    def build_page_values(self, request: Request) -> dict[str, Any]:
        """Return the values that every page of a person needs."""
        token = self.access.make_form_token(request.state.identity)
        return {"person": request.state.person, "form_token": token, "settings": self.settings}

    def close(self) -> None:
        """Stop the worker, and release the folder of cases for another process."""
        self.worker.close()
        self.store.close()


async def get_service(request: Request) -> DeskService:
    """Return the service of the application that received a request."""
    service: DeskService = request.app.state.desk
    return service


Service = Annotated[DeskService, Depends(get_service)]


async def find_case(case_id: str, desk: Service) -> CaseRecord:
    """Return the case with the id `case_id`; refuse the request if the case is unknown."""
    case = desk.store.find(case_id)
    if case is None:
        raise RequestRefusedError(
            404, "not-found", "The case does not exist. It may have been deleted"
        )
    return case


def list_batch(batch: str, desk: Service) -> list[CaseRecord]:
    """Return the cases that were added together as `batch`; refuse the request if there are none."""
    cases = desk.store.select(CaseFilter(batch=batch)) if batch else []
    if not cases:
        raise RequestRefusedError(
            404, "not-found", "The batch does not exist. Its cases may have been deleted"
        )
    return cases


async def read_form(request: Request, desk: Service) -> AsyncIterator[FormData]:
    """Yield the fields of a form whose token is valid; its files are closed at the end."""
    limits = {"max_files": MAX_CLIPS, "max_fields": 10, "max_part_size": MAX_TEXT * 4}
    async with request.form(**limits) as form:
        desk.access.require_form_token(request.state.identity, form.get("form_token"))
        yield form


Case = Annotated[CaseRecord, Depends(find_case)]


async def find_usable_case(case: Case) -> CaseRecord:
    """Return the case of a request; refuse the request if the case is known to be damaged."""
    if case.damage:
        raise RequestRefusedError(409, "damaged", f"The case is damaged: {case.damage}")
    return case


def find_intact_case(case: Case, desk: Service) -> CaseRecord:
    """Return the case of a request after all its files were hashed again; refuse a damaged case."""
    if not desk.store.check(case):
        reason = case.damage or "the files of the case are in the trash"
        raise RequestRefusedError(409, "damaged", f"The case is damaged: {reason}")
    return case


UsableCase = Annotated[CaseRecord, Depends(find_usable_case)]
IntactCase = Annotated[CaseRecord, Depends(find_intact_case)]
Batch = Annotated[list[CaseRecord], Depends(list_batch)]
Form = Annotated[FormData, Depends(read_form)]
