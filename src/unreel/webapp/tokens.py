"""Bearer tokens: their file, their scopes, and their limits of rate and concurrency."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from unreel.core.input_files import read_toml_file
from unreel.recipes.validation import RecipeSection, validate_recipe_sections
from unreel.webapp.refusals import BUSY, RequestRefusedError

Scope = Literal["reward", "compare", "metrics"]
_BURST = 2


class TokenSettings(RecipeSection):
    """One bearer token: hash, scopes and limits."""

    name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """SHA-256 of the token in hexadecimal; the token itself is stored nowhere."""
    scopes: tuple[Scope, ...] = ("reward",)
    rate: float = Field(default=200.0, gt=0)
    """Maximum requests per second, with a burst of twice as many."""
    concurrency: int = Field(default=256, ge=1)
    """Maximum number of concurrent requests; one counts until its work has ended, also after its deadline."""
    max_pending: int = Field(default=256, ge=1)
    """Maximum number of clips in these requests."""
    max_pending_mb: float = Field(default=1024, gt=0)
    """Maximum size of these requests together in MB."""
    max_mb: float | None = Field(default=None, gt=0)
    """Maximum size of a request in MB; a lower limit of the service has precedence."""


class TokenFile(RecipeSection):
    """TOML file of tokens: one `[[token]]` each."""

    token: tuple[TokenSettings, ...] = Field(min_length=1)


def read_tokens(path: Path) -> tuple[TokenSettings, ...]:
    """Return the tokens of a TOML file.

    Raise `UnreadableSourceError` if it cannot be read, or `InvalidSettingError` if a key is unknown
    or a value cannot be used.
    """
    return validate_recipe_sections(TokenFile, read_toml_file(path, "file of tokens")).token


def find_token(header: str | None, tokens: Sequence[TokenSettings]) -> TokenSettings | None:
    """Return an `Authorization` header's token, also as HTTP Basic password; `None` if unknown."""
    scheme, _, credentials = (header or "").partition(" ")
    secret = credentials.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic":
        try:
            secret = base64.b64decode(secret, validate=True).partition(b":")[2]
        except binascii.Error:
            return None
    elif scheme.lower() != "bearer":
        return None
    digest = hashlib.sha256(secret).hexdigest()
    matches = [token for token in tokens if hmac.compare_digest(token.sha256, digest)]
    return matches[0] if matches and secret else None


class TokenRateLimiter:
    """Rate, concurrency and pending clips of each token, in this process."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}
        self._running: Counter[str] = Counter()
        self._pending: Counter[str] = Counter()

    @contextmanager
    def admit(
        self, token: TokenSettings | None, n_clips: int, work: Collection["asyncio.Task[Any]"]
    ) -> Iterator[None]:
        """Count one request with `n_clips` clips until the context and all tasks in `work` have ended.

        Raises:
            RequestRefusedError: The token has used its rate, its concurrency or its pending clips.
        """
        if token is None:
            yield
            return
        now_s, max_tokens = time.monotonic(), token.rate * _BURST
        left, at_s = self._buckets.get(token.name, (max_tokens, now_s))
        left = min(max_tokens, left + (now_s - at_s) * token.rate)
        is_full = self._running[token.name] >= token.concurrency
        if left < 1 or is_full or self._pending[token.name] + n_clips > token.max_pending:
            self._buckets[token.name] = (left, now_s)
            wait_s = (1 - left) / token.rate if left < 1 else 1.0
            raise RequestRefusedError(
                BUSY,
                "rate-limited",
                f"token {token.name} allows {token.rate:g} requests/s, {token.concurrency} at once,"
                f" with {token.max_pending} clips",
                wait_s,
            )
        self._buckets[token.name] = (left - 1, now_s)
        self._running[token.name] += 1
        self._pending[token.name] += n_clips

        def end() -> None:
            self._running[token.name] -= 1
            self._pending[token.name] -= n_clips

        try:
            yield
        finally:
            call_when_ended(work, end)


def call_when_ended(tasks: Collection["asyncio.Task[Any]"], function: Callable[[], None]) -> None:
    """Call `function` when all `tasks` have ended: now, if none of them is running."""
    if running := [task for task in tasks if not task.done()]:
        gathered = asyncio.gather(*running, return_exceptions=True)
        gathered.add_done_callback(lambda _: function())
    else:
        function()
