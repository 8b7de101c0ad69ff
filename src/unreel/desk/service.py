"""Open parts of one desk, for its routes."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from fastapi.responses import Response, StreamingResponse

from unreel.core.settings import EnvironmentSettings
from unreel.desk.access import DeskAccess
from unreel.desk.bundle import write_bundle
from unreel.desk.case_state import ENDED, CaseRecord
from unreel.desk.cases import CaseFilter, CaseStore
from unreel.desk.reviewer_sets import open_set
from unreel.desk.settings import DeskSettings
from unreel.desk.signature import sign_manifest
from unreel.desk.worker import CaseWorker
from unreel.media.access import open_media_reader
from unreel.report.review.browser_pdf import find_browser
from unreel.webapp.refusals import RequestRefusedError


class DeskService:
    """Open parts of one desk."""

    def __init__(
        self,
        settings: DeskSettings,
        environment: EnvironmentSettings,
        *,
        trusted: bool,
        on_link: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.sets = {each.name: open_set(each, environment) for each in settings.reviewers}
        if settings.signing_key is not None:
            sign_manifest(b"", settings.signing_key)
        self.access = DeskAccess(settings.proxy, on_link)
        self.store = CaseStore(settings.cases)
        reading = partial(
            open_media_reader, environment, trusted=trusted, at_once=("probe", "frames")
        )
        self.worker = CaseWorker(self.store, self.sets, settings, reading)
        self.browser = find_browser()
        self.printing = asyncio.Lock()

    def find(self, case_id: str) -> CaseRecord:
        """Return a case; refuse an id without one."""
        case = self.store.find(case_id)
        if case is None:
            refuse_absent("There is no such case. It may have been deleted")
        return case

    def list_batch(self, batch: str) -> list[CaseRecord]:
        """Return the cases of a batch; refuse one without cases."""
        cases = self.store.select(CaseFilter(batch=batch)) if batch else []
        if not cases:
            refuse_absent("There is no such batch. Its cases may have been deleted")
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


def refuse_absent(message: str) -> NoReturn:
    """Refuse a request for something that does not exist."""
    status = 404
    raise RequestRefusedError(status, "not-found", message)


def refuse_invalid(message: str) -> NoReturn:
    """Refuse a request with unusable values."""
    status = 422
    raise RequestRefusedError(status, "invalid", message)
