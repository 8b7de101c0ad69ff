"""A timestamp authority (RFC 3161) on loopback, by `openssl ts`."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SETTINGS = (
    "[tsa]\nserial = serial\ndefault_policy = 1.2.3.4\ndigests = sha256\nsigner_digest = sha256\n"
)
MAKE = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout key.pem -out cert.pem"
USES = ("extendedKeyUsage=critical,timeStamping", "keyUsage=critical,digitalSignature")
STAMP = (
    "ts -reply -config tsa.cnf -section tsa -signer cert.pem -inkey key.pem -queryfile /dev/stdin"
)


@contextmanager
def serve_timestamps(folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of the authority, and the file with its certificate."""
    folder.mkdir()
    (folder / "tsa.cnf").write_text(SETTINGS)

    def openssl(*words: str, data: bytes = b"") -> bytes:
        command = ["openssl", *words]
        done = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=True)
        return done.stdout

    openssl(*MAKE.split(), *(word for use in USES for word in ("-addext", use)))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["content-type"] == "application/timestamp-query"
            query = self.rfile.read(int(self.headers["content-length"]))
            reply = openssl(*STAMP.split(), data=query)
            self.send_response(200)
            self.send_header("content-type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tsr", folder / "cert.pem"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
