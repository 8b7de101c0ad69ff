"""What a reviewer gave back; where there is nothing, a `Failure` says why."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that an answer cost, as the server counted them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The raw text, exactly as it came."""

    text: str
    latency_us: int | None = None
    usage: Usage | None = None
    answered_by: str | None = None
    """Model name in the response if it differs from the requested one, for example a dated version."""

    @property
    def digest(self) -> str:
        """Hash of the text, stored beside it."""
        return digest_text(self.text)


def digest_text(text: str) -> str:
    """Return the hash of a reply's text: 128 bits of BLAKE2b in hexadecimal."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
