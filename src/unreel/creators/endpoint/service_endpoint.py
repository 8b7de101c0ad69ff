"""Service URL and key header, importable without a client."""

from dataclasses import dataclass, field

from unreel.core.server_keys import ServerAddress, read_server


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEndpoint:
    """Service URL, and the header of its key."""

    url: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    key: str | None = field(default=None, repr=False)

    @property
    def server(self) -> ServerAddress:
        """Return the server."""
        return read_server(self.url)

    def redact(self, text: str) -> str:
        """Remove the key from `text`, because a server may repeat the key."""
        return text.replace(self.key, "[key]") if self.key else text
