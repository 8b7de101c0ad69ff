"""Batch API of a provider: questions in one file, answered within a day at half the price.

Requests and results have the form of OpenAI's Files and Batches. A batch runs at the provider, so a
question is asked once, whatever happens to the process that asked it.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2

from unreel.core.answer import Reply, Usage
from unreel.core.errors import KeyRejectedError, MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.network.http_client import HttpReply, open_blocking_http_client, read_blocking_http_body
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.model_address import ModelAddress
from unreel.reviewers.endpoint.transport import RequestFailure, parse_chat_response

MAX_REQUESTS = 50_000
"""Maximum number of requests of a batch."""
MAX_BYTES = 190_000_000
"""Maximum size of the file of a batch; the provider takes 200 MB."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_FILE = "questions.jsonl"
_ENDPOINT = "/v1/chat/completions"
_TIMEOUT_S = 120.0
_ATTEMPTS = 8
_LONGEST_WAIT_S = 60.0
_PAGES = 10
_PAGE = 100
_LIST_BYTES = 16 << 20
_RESULT_BYTES = 1 << 31
_REMEDY = "Run the same command again: no question is asked twice"
_REASONS = {
    "batch_expired": FailureReason.OUT_OF_TIME,
    "batch_cancelled": FailureReason.STOPPED,
    "token_limit_exceeded": FailureReason.RATE_LIMITED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """State of a batch at the provider."""

    status: str
    n_done: int
    """Number of answered or failed requests."""
    result_files: tuple[str, ...]
    """Ids of the files with answers and with errors."""
    failure: Failure
    """Failure of the requests without a result."""

    @property
    def is_ended(self) -> bool:
        """Return whether the provider does nothing more for the batch."""
        return self.status in ENDED


class BatchServer:
    """Client of a provider's files and batches. A failed request is repeated a few times.

    All methods raise `KeyRejectedError` if the key is rejected, and `MachineError` if the provider
    cannot be reached or rejects a request.
    """

    def __init__(self, address: ModelAddress, api_key: str | None) -> None:
        self._name = str(address.server)
        self._http = open_blocking_http_client(
            address.server, base_url=address.base_url, timeout_s=_TIMEOUT_S
        )
        if api_key:
            self._http.headers["Authorization"] = f"Bearer {api_key}"

    def upload(self, file: Path) -> str:
        """Upload a file of requests; return its id."""

        def send() -> HttpReply:
            with file.open("rb") as opened:
                files = {"file": (file.name, opened, "application/jsonl")}
                return self._send("POST", "/files", data={"purpose": "batch"}, files=files)

        return str(self._retry(send)["id"])

    def ensure_batch(self, input_file: str) -> str:
        """Return the id of the batch of an uploaded file; create the batch if there is none."""

        def send() -> HttpReply:
            after: str | None = None
            for _ in range(_PAGES):
                page = {"limit": _PAGE} | ({"after": after} if after else {})
                listed = self._send("GET", "/batches", params=page)
                if listed.status != HTTPStatus.OK:
                    return listed
                document = json.loads(listed.body)
                for batch in document["data"]:
                    if batch["input_file_id"] == input_file:
                        return HttpReply(HTTPStatus.OK, json.dumps(batch).encode())
                after = document.get("last_id")
                if not document.get("has_more"):
                    break
            request = {
                "input_file_id": input_file,
                "endpoint": _ENDPOINT,
                "completion_window": "24h",
            }
            return self._send("POST", "/batches", json=request)

        return str(self._retry(send)["id"])

    def read_state(self, batch: str) -> BatchState:
        """Return the state of a batch."""
        document = self._retry(lambda: self._send("GET", f"/batches/{batch}"))
        status = str(document["status"])
        counts = document.get("request_counts") or {}
        files = (document.get(name) for name in ("output_file_id", "error_file_id"))
        errors = (document.get("errors") or {}).get("data") or [{}]
        default = f"batch_{status}"
        message = str(errors[0].get("message") or f"the batch is {status} without a result")
        return BatchState(
            status=status,
            n_done=int(counts.get("completed") or 0) + int(counts.get("failed") or 0),
            result_files=tuple(str(file) for file in files if file),
            failure=_build_failure(str(errors[0].get("code") or default), message),
        )

    def download(self, file: str) -> bytes:
        """Return the content of a file."""
        content = f"/files/{file}/content"
        reply = self._repeat(lambda: self._send("GET", content, cap_bytes=_RESULT_BYTES))
        return reply.body

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(
        self, method: str, path: str, *, cap_bytes: int = _LIST_BYTES, **options: Any
    ) -> HttpReply:
        with self._http.stream(method, path, **options) as response:
            body = read_blocking_http_body(response, cap_bytes=cap_bytes)
        if body is None:
            raise MachineError(f"{self._name}: a reply above {cap_bytes} bytes", _REMEDY)
        return HttpReply(response.status_code, body)

    def _retry(self, send: Callable[[], HttpReply]) -> Mapping[str, Any]:
        try:
            document = json.loads(self._repeat(send).body)
            if isinstance(document, dict):
                return document
        except ValueError:
            pass
        raise MachineError(f"{self._name}: a reply about a batch is no JSON object", _REMEDY)

    def _repeat(self, send: Callable[[], HttpReply]) -> HttpReply:
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(min(_LONGEST_WAIT_S, 2.0 ** (attempt - 1)))
            try:
                reply = send()
            except httpx2.HTTPError as error:
                problem = type(error).__name__
                continue
            if reply.status == HTTPStatus.OK:
                return reply
            parsed = parse_chat_response(reply, now=datetime.now(UTC))
            problem = parsed.failure.detail if isinstance(parsed, RequestFailure) else ""
            if reply.status == HTTPStatus.UNAUTHORIZED:
                raise KeyRejectedError(f"{self._name}: {problem}", "Check the API key")
            if isinstance(parsed, RequestFailure) and parsed.final:
                break
        raise MachineError(f"{self._name} does not accept the batch ({problem})", _REMEDY)


class BatchFileWriter:
    """Client of a reviewer that writes its questions into files, and asks nothing itself.

    Args:
        folder: Folder of the files; one file exists at a time.
        budget: Limits of requests and cost.
        submit: Function that gets a file, the keys of its questions, and their maximum cost in USD.
    """

    def __init__(
        self,
        folder: OutputDirectory,
        budget: RequestBudget,
        submit: Callable[[Path, list[str], str], None],
    ) -> None:
        self._folder = folder
        self._budget, self._submit = budget, submit
        self._lock = asyncio.Lock()
        self._keys: list[str] = []
        self._n_bytes = 0
        self._submitted_usd = budget.spending().cost_usd
        self.rejected: dict[str, Failure] = {}
        """Failures of the questions that a limit does not allow, by key."""

    async def ask(self, body: bytes, *, key: str, max_usage: Usage) -> Failure:
        """Write a question; the returned failure only says where it is."""
        async with self._lock:
            reserved_usd = await self._budget.reserve(max_usage)
            if isinstance(reserved_usd, Failure):
                self.rejected[key] = reserved_usd
                return reserved_usd
            self._budget.settle(reserved_usd, max_usage, answered=False)
            head = {"custom_id": key, "method": "POST", "url": _ENDPOINT}
            line = b"".join((json.dumps(head)[:-1].encode(), b', "body": ', body, b"}\n"))
            if self._keys and (
                self._n_bytes + len(line) > MAX_BYTES or len(self._keys) >= MAX_REQUESTS
            ):
                await asyncio.to_thread(self.flush)
            with self._folder.append(_FILE) as file:
                file.write(line)
            self._keys.append(key)
            self._n_bytes += len(line)
        return Failure(FailureReason.STOPPED, "the question is in a batch")

    def flush(self) -> None:
        """Submit the questions that were not submitted."""
        if not self._keys:
            return
        now_usd = self._budget.spending().cost_usd
        cost_usd = "0" if now_usd is None else str(now_usd - (self._submitted_usd or 0))
        self._submit(self._folder.root / _FILE, self._keys, cost_usd)
        self._folder.remove(_FILE)
        self._keys, self._n_bytes, self._submitted_usd = [], 0, now_usd


@dataclass(kw_only=True)
class BatchAnswers:
    """Client of a reviewer that finds its answers in the results of batches."""

    has_price: bool
    results: dict[str, bytes] = field(default_factory=dict)
    """Line of the result of a question, by key."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Failures of the questions without a result, by key."""

    def add_results(self, content: bytes) -> None:
        """Add the results in the content of a file of the provider; unreadable lines are left out."""
        for line in content.splitlines():
            try:
                self.results[str(json.loads(line)["custom_id"])] = line
            except (ValueError, LookupError, TypeError):
                continue

    async def ask(self, _body: bytes, *, key: str, max_usage: Usage) -> Reply | Failure:
        """Return the answer to the question `key`, or its failure."""
        line = self.results.get(key)
        if line is None:
            not_asked = Failure(FailureReason.BUDGET_SPENT, "the question is in no batch")
            return self.failures.get(key, not_asked)
        outcome = parse_batch_result(line)
        if isinstance(outcome, Failure) or outcome.usage is not None or not self.has_price:
            return outcome
        return replace(outcome, usage=replace(max_usage, is_estimated=True))


def parse_batch_result(line: bytes) -> Reply | Failure:
    """Parse one line of a result: the response to a single question, or the reason why there is none."""
    document = json.loads(line)
    error, response = document.get("error"), document.get("response")
    if isinstance(error, dict):
        return _build_failure(str(error.get("code")), str(error.get("message")))
    if not isinstance(response, dict) or not isinstance(response.get("status_code"), int):
        return Failure(FailureReason.MALFORMED_REPLY, "the result has no response")
    body = json.dumps(response.get("body")).encode()
    parsed = parse_chat_response(HttpReply(response["status_code"], body), now=datetime.now(UTC))
    if isinstance(parsed, Reply):
        return parsed
    return replace(parsed.failure, usage=parsed.usage)


def _build_failure(code: str, message: str) -> Failure:
    reason = _REASONS.get(code, FailureReason.REQUEST_REJECTED)
    return Failure(reason, sanitise_line(f"{code}: {message}")[:200])
