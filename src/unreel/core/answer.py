"""Answer of a reviewer to a question; a `Failure` replaces a missing answer."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of all requests of one question, as counted by the server."""

    input_tokens: int
    output_tokens: int
    is_estimated: bool = False
    """Whether a part is estimated from the request, because the server reported no usage."""

    def __add__(self, other_usage: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other_usage.input_tokens,
            output_tokens=self.output_tokens + other_usage.output_tokens,
            is_estimated=self.is_estimated or other_usage.is_estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Raw text of a reviewer's answer, unchanged, with latency and token usage."""

    text: str
    latency_us: int | None = None
    usage: Usage | None = None
    answered_by: str | None = None
    """Model name in the response if it differs from the requested one, for example a dated version."""

    @property
    def digest(self) -> str:
        """Return the hash of the text, which is stored next to it."""
        return digest_reply_text(self.text)


def digest_reply_text(text: str) -> str:
    """Return the hash of a reply's text: 128 bits of BLAKE2b in hexadecimal."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
