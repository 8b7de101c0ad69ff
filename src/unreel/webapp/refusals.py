"""Refusals of requests, with HTTP status and reason."""

from typing import Any

from unreel.core.errors import UnreelError

AMBIGUOUS, UNAUTHORISED, FORBIDDEN, BUSY, STOPPED = 400, 401, 403, 429, 503
SLOW, _TOO_LARGE, _INVALID = 408, 413, 422
_HEADERS = {
    AMBIGUOUS: {"connection": "close"},
    UNAUTHORISED: {"www-authenticate": "Bearer"},
    SLOW: {"connection": "close"},
    _TOO_LARGE: {"connection": "close"},
}


class RequestRefusedError(UnreelError):
    """A request that is not processed, with its HTTP status and a reason."""

    def __init__(
        self, status: int, reason: str, message: str, retry_s: float | None = None
    ) -> None:
        super().__init__(status, reason, message, retry_s)
        self.status, self.reason, self.message, self.retry_s = status, reason, message, retry_s

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the response."""
        retry = {} if self.retry_s is None else {"retry-after": str(max(1, round(self.retry_s)))}
        return retry | _HEADERS.get(self.status, {})

    @property
    def document(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {"error": {"reason": self.reason, "message": self.message}}


class InvalidRequestError(RequestRefusedError):
    """A request that is malformed."""

    def __init__(self, message: str) -> None:
        super().__init__(_INVALID, "invalid", message)


def build_too_large_refusal(max_bytes: int) -> RequestRefusedError:
    """Return the refusal of a request above `max_bytes` bytes."""
    message = f"the request is larger than {max_bytes} bytes. Send fewer clips at a time"
    return RequestRefusedError(_TOO_LARGE, "too-large", message)


def build_overload_refusal(message: str) -> RequestRefusedError:
    """Return the refusal of a request above the current capacity."""
    return RequestRefusedError(BUSY, "overloaded", message, 1.0)
