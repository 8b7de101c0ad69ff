"""Where a service is, and how its key gets there; told without loading a client."""

from dataclasses import dataclass, field

from unreel.core.server import Server, read_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where a service is, and the header that brings its key there."""

    url: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    key: str | None = field(default=None, repr=False)

    @property
    def server(self) -> Server:
        """Who is asked."""
        return read_server(self.url)

    def redact(self, text: str) -> str:
        """`text` without the key: a server may repeat it."""
        return text.replace(self.key, "[key]") if self.key else text
