"""Questions of a run in batches of a provider: collected, submitted once, and awaited across restarts."""

import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path

from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.engine.local_runner import LocalRunner
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import JobCallbacks
from unreel.engine.stage import Row, Stage
from unreel.engine.table import LanceTable
from unreel.evaluation.stored_recipe import BATCHES_FILE
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.batches import BatchAnswers, BatchFileWriter, BatchServer
from unreel.reviewers.endpoint.budget import EarlierSpending, RequestBudget
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.servers import find_model_endpoint
from unreel.reviewers.factory import ReviewerFactory

_MIN_WAIT_S, _MAX_WAIT_S = 1.0, 60.0
_SLOWER = 1.5


@dataclass(slots=True, kw_only=True)
class SubmittedBatch:
    """Submitted batch of questions of a run, with file and id at the provider."""

    input_file: str
    keys: list[str]
    max_cost_usd: str
    id: str = ""
    """Id at the provider; "" until the provider has confirmed the batch."""


class _DiscardingSink:
    """Sink of the rows whose questions were only collected."""

    def offer(self, _row: Row) -> bool:
        return True

    def add(self, row: Row) -> None:
        """Drop the row."""

    def require_ready(self) -> None:
        """Accept every row."""


def read_submitted_batches(place: StorageLocation) -> list[SubmittedBatch]:
    """Return the batches of the run at `place` whose answers are not all stored; empty if there are none."""
    if place.size(BATCHES_FILE) is None:
        return []
    try:
        return [SubmittedBatch(**batch) for batch in json.loads(place.read(BATCHES_FILE))]
    except (ValueError, TypeError) as error:
        raise UnreadableSourceError(
            f"{place.uri}/{BATCHES_FILE}",
            f"no list of batches ({type(error).__name__})",
            "Restore the file: without the ids of the batches, their questions would be asked twice",
        ) from error


@contextmanager
def open_batch_answers(
    section: ReviewerSection,
    factory: ReviewerFactory,
    questions: Iterable[Row],
    *,
    place: StorageLocation,
    answer_table: LanceTable,
    key_hosts: str,
    build_stage: Callable[[ReviewerFactory], Stage],
    earlier_usd: Decimal,
    retry: Collection[str],
    callbacks: JobCallbacks,
) -> Iterator[ReviewerFactory]:
    """Ask `questions` in batches, and yield the factory of a reviewer that returns their answers.

    Questions of batches that an earlier call submitted are not asked again. Afterwards, if the
    answers are stored, the batches are forgotten. The caller must hold the lock of the run.
    """
    address = parse_model_address(section.model)
    key = find_model_endpoint(section.model, key_hosts=key_hosts).read_key()
    half_price = None if factory.price is None else factory.price.halve()
    batches = read_submitted_batches(place)

    def store() -> None:
        document = json.dumps([asdict(batch) for batch in batches])
        place.put(BATCHES_FILE, document.encode())

    with (
        closing(BatchServer(address, key)) as server,
        tempfile.TemporaryDirectory(prefix="unreel-batch-") as folder,
    ):

        def register(batch: SubmittedBatch) -> None:
            batch.id = server.ensure_batch(batch.input_file)
            store()
            n = len(batch.keys)
            callbacks.on_note(f"{batch.id}: {n:,} questions, answered within 24 hours")

        def submit(file: Path, keys: list[str], max_cost_usd: str) -> None:
            uploaded = server.upload(file)
            batch = SubmittedBatch(input_file=uploaded, keys=keys, max_cost_usd=max_cost_usd)
            batches.append(batch)
            store()  # a kill from here on finds the file, and asks the provider for its batch
            register(batch)

        # Earlier batches, and the questions that are in none of them.
        for batch in batches:
            if not batch.id:
                register(batch)
        callbacks.on_phase("writing the questions of a batch")
        promised_usd = sum((Decimal(batch.max_cost_usd) for batch in batches), earlier_usd)
        budget = RequestBudget(
            max_requests=section.max_requests,
            max_cost_usd=section.max_cost_usd,
            price=half_price,
            before=EarlierSpending(spent_usd=promised_usd),
        )
        writer = BatchFileWriter(OutputDirectory(Path(folder)), budget, submit)
        submitted = {key for batch in batches for key in batch.keys}
        pending = PendingQuestionFilter(answer_table, retry).iter_due(questions)
        LocalRunner().run(
            (row for row in pending if row["key"] not in submitted),
            [build_stage(replace(factory, build=partial(factory.build, client=writer)))],
            sink=_DiscardingSink(),
            ledger=Path(folder) / "started",
        )
        writer.flush()

        # Their answers.
        answers = BatchAnswers(has_price=half_price is not None, failures=writer.rejected)
        _await_batches(server, batches, answers, callbacks)
    build = partial(factory.build, client=answers)
    yield replace(factory, build=build, price=half_price)
    if batches:
        place.remove(BATCHES_FILE)


def _await_batches(
    server: BatchServer,
    batches: list[SubmittedBatch],
    answers: BatchAnswers,
    callbacks: JobCallbacks,
) -> None:
    """Wait until all batches have ended, and add their results and failures to `answers`."""
    n_questions = sum(len(batch.keys) for batch in batches)
    waiting, n_ended, wait_s = [*batches], 0, _MIN_WAIT_S
    while waiting:
        still, n_done = [], 0
        for batch in waiting:
            state = server.read_state(batch.id)
            if not state.is_ended:
                still.append(batch)
                n_done += state.n_done
                continue
            for file in state.result_files:
                answers.add_results(server.download(file))
            without = (key for key in batch.keys if key not in answers.results)
            answers.failures.update(dict.fromkeys(without, state.failure))
            n_ended += len(batch.keys)
        callbacks.on_phase(f"batches: {n_ended + n_done:,} of {n_questions:,} answered")
        waiting = still
        if waiting:
            time.sleep(wait_s)
            wait_s = min(_MAX_WAIT_S, wait_s * _SLOWER)
