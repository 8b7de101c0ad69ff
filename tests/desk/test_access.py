"""Nobody without a session reaches a case, and strangers' text stays text."""

import asyncio
import io
import re
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from click.testing import CliRunner
from starlette.websockets import WebSocketDisconnect

from unreel.cli.desk import desk as command
from unreel.core.errors import InvalidSettingError
from unreel.desk import access, app
from unreel.desk.app import create_desk_app
from unreel.desk.case_store import sanitise_upload_name
from unreel.desk.settings import (
    DeskSettings,
    ProxySettings,
    read_desk_settings,
    require_sign_in_proxy,
)
from unreel.desk.worker import CaseReviewWorker
from unreel.webapp import server

PROXY = ProxySettings(address="10.1.2.3", user_header="X-User")
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror=alert(1)>\"'{{7*7}}"


@pytest.fixture(autouse=True)
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave all cases in the queue."""
    monkeypatch.setattr(CaseReviewWorker, "start", lambda _worker: None)


def paths(case_id: str, batch: str) -> list[str]:
    """Every route that shows or changes something."""
    case = f"/cases/{case_id}"
    return [
        "/",
        "/events",
        f"/events?case={case_id}",
        f"{case}/",
        *(f"{case}/{name}" for name in ("original", "bundle.zip", "evidence.pdf", "thumb.jpg")),
        *(f"{case}/{name}" for name in ("result.json", "evidence.html", "log.jsonl")),
        f"/batches/{batch}/",
        f"/batches/{batch}/bundle.zip",
    ]


def test_no_request_without_a_session_reaches_a_case(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)), ("b.mp4", clip_bytes(1)))
        case = desk.service.store.select()[0]
        desk.client.cookies.clear()
        for path in paths(case.id, case.batch):
            reply = desk.client.get(path, follow_redirects=False)
            assert reply.status_code == 401, path
            assert case.name not in reply.text
        for path in ("/cases", f"/cases/{case.id}/delete", f"/cases/{case.id}/entries"):
            assert desk.client.post(path, data={"text": "x"}).status_code == 401
        desk.client.cookies.set("unreel-desk-80", "guessed")
        assert desk.client.get("/").status_code == 401
        page = desk.client.get("/", headers={"accept": "text/html"})
        assert "Open the link that `unreel desk` printed" in page.text


def test_the_link_works_once_and_the_session_cookie_is_strict(open_desk) -> None:
    with open_desk(signed_in=False) as desk:
        link = desk.service.access.link
        assert desk.client.get("/login?token=wrong").status_code == 401
        reply = desk.client.get(link, follow_redirects=False)
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "domain" not in cookie  # a name that is bound again to this address has no session
        desk.client.cookies.clear()
        assert desk.client.get(link).status_code == 401
        assert desk.service.access.link != link


def test_a_session_ends_without_requests_and_a_request_extends_it(open_desk, monkeypatch) -> None:
    with open_desk() as desk:
        monkeypatch.setattr(access, "SESSION_S", 1.0)
        for pause_s, status in ((0.6, 200), (0.6, 200), (1.1, 401), (0, 401)):
            time.sleep(pause_s)
            assert desk.client.get("/").status_code == status


def test_a_person_signs_out(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        cookie, token = dict(desk.client.cookies), desk.token
        assert "Sign out" in desk.client.get("/").text
        assert desk.client.post("/logout").status_code == 403
        assert desk.client.get("/").status_code == 200
        streams = []
        reading = threading.Thread(target=lambda: streams.append(desk.client.get("/events").text))
        reading.start()
        while not desk.service.n_streams.total():
            time.sleep(0.01)
        reply = desk.client.post("/logout", data={"form_token": token})
        assert "You are signed out" in reply.text
        assert not desk.client.cookies
        desk.client.cookies.update(cookie)
        assert desk.client.get("/").status_code == 401
        reading.join(timeout=20)
        assert "event: end" in streams[0]


def test_a_stream_counts_before_it_is_accepted(open_desk, clip_bytes, monkeypatch) -> None:
    """Streams that are requested at the same moment exceed the limit no more than others."""
    monkeypatch.setattr(app, "_MAX_STREAMS", 3)
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        cookies = "; ".join(f"{name}={value}" for name, value in desk.client.cookies.items())

        async def request(statuses: list[int], release: asyncio.Event) -> None:
            async def send(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])
                    if message["status"] == 200:
                        await release.wait()

            async def receive() -> dict[str, Any]:
                await release.wait()
                return {"type": "http.disconnect"}

            scope = {"type": "http", "method": "GET", "path": "/events", "raw_path": b"/events"}
            scope |= {"query_string": b"", "headers": [(b"cookie", cookies.encode())]}
            scope |= {"server": ("testserver", 80), "http_version": "1.1", "scheme": "http"}
            await desk.client.app(scope, receive, send)

        async def work() -> list[int]:
            statuses: list[int] = []
            release = asyncio.Event()
            tasks = [asyncio.create_task(request(statuses, release)) for _ in range(20)]
            await asyncio.wait(tasks, timeout=0.5)
            release.set()
            await asyncio.gather(*tasks)
            return statuses

        assert Counter(asyncio.run(work())) == {200: 3, 429: 17}
        assert desk.service.n_streams.total() == 0


def test_connections_without_a_request_are_closed(tmp_path: Path, monkeypatch) -> None:
    servers: list[uvicorn.Server] = []
    monkeypatch.setattr(server, "_IDLE_S", 0.5)

    class Kept(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)

    monkeypatch.setattr(server.uvicorn, "Server", Kept)
    addresses: list[str] = []
    desk = create_desk_app(DeskSettings(cases=tmp_path), trusted=True)
    options = {"host": "127.0.0.1", "port": 0, "on_start": addresses.append, "stop_s": 1}
    thread = threading.Thread(target=server.run_app, args=(desk,), kwargs=options)
    thread.start()
    try:
        while not (servers and servers[0].started):
            time.sleep(0.02)
        at = httpx.URL(addresses[0])
        get = b"GET /login HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        for data in (b"", b"GET / HTTP/1.1\r\nhost: x\r\nx-never: ", get + b"GET / HT"):
            with socket.create_connection((at.host, at.port), timeout=10) as idle:
                idle.sendall(data)
                while idle.recv(9999):
                    pass
        with socket.create_connection((at.host, at.port), timeout=10) as busy:
            for _ in range(8):
                busy.sendall(get)
                reply = b""
                while not reply.endswith(b"}}"):
                    data = busy.recv(9999)
                    assert data
                    reply += data
                assert reply.startswith(b"HTTP/1.1 401")
                time.sleep(0.3)
    finally:
        servers[0].should_exit = True
        thread.join()


def test_every_answer_forbids_frames_sniffing_and_foreign_scripts(open_desk) -> None:
    with open_desk() as desk:
        for path in ("/", "/cases/0000000000000000/", "/static/unreel.desk:desk.js"):
            headers = desk.client.get(path, headers={"accept": "text/html"}).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
        page = desk.client.get("/").text
        assert "script-src &#39;self&#39;;" in page
        assert not re.search(r"<script(?! src=)", page)
        assert "unsafe" not in page
        assert desk.client.get("/static/unreel.cli.curate:settings.py").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "", "origin": "https://evil.example"},
        {"sec-fetch-site": "", "origin": "null"},
    ],
)
def test_a_form_of_another_site_is_refused(open_desk, clip_bytes, headers) -> None:
    with open_desk() as desk:
        token = desk.token
        given = {name: value for name, value in headers.items() if value}
        del desk.client.headers["sec-fetch-site"]
        data = {"form_token": token, "reviewers": next(iter(desk.service.sets))}
        files = [("clips", ("a.mp4", clip_bytes(0)))]
        reply = desk.client.post("/cases", data=data, files=files, headers=given)
        assert (reply.status_code, reply.json()["error"]["reason"]) == (403, "cross-site")
        assert desk.service.store.select() == []
        # The same form is taken from the desk's own page.
        own = {"origin": "http://testserver"}
        assert desk.client.post("/cases", data=data, files=files, headers=own).status_code == 200


def test_a_planted_cookie_becomes_no_session(open_desk) -> None:
    with open_desk(signed_in=False) as desk:
        desk.client.cookies.set("unreel-desk-80", "planted")
        reply = desk.client.get(desk.service.access.link, follow_redirects=False)
        assert "planted" not in reply.headers["set-cookie"]
        desk.client.cookies.clear()
        desk.client.cookies.set("unreel-desk-80", "planted")
        assert desk.client.get("/").status_code == 401


def test_other_methods_and_sockets_reach_nothing(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.service.store.select()
        path = f"/cases/{case.id}/delete"
        for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "QUERY"):
            assert desk.client.request(method, path).status_code == 405
        with pytest.raises(WebSocketDisconnect), desk.client.websocket_connect("/events"):
            pass
        desk.client.cookies.clear()
        for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "QUERY"):
            assert desk.client.request(method, "/login").status_code == 401
        assert desk.service.store.select() == [case]


def test_the_form_token_of_another_session_is_refused(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        other = desk.token
        desk.client.cookies.clear()
        desk.sign_in()
        assert desk.token != other
        assert desk.drop(("a.mp4", clip_bytes(0)), form_token=other).status_code == 403


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_a_form_without_its_token_is_refused(open_desk, clip_bytes, token) -> None:
    with open_desk() as desk:
        reply = desk.drop(("a.mp4", clip_bytes(0)), form_token=token)
        assert (reply.status_code, reply.json()["error"]["reason"]) == (403, "form-token")
        assert desk.service.store.select() == []


def test_a_user_header_counts_from_the_proxy_alone(open_desk) -> None:
    anna = {"x-user": "anna@example.org"}
    with open_desk(proxy=PROXY, signed_in=False, client=("10.1.2.3", 5)) as desk:
        assert "anna@example.org" in desk.client.get("/", headers=anna).text
        assert desk.client.get("/").status_code == 401
        doubled = [("x-user", "forged@example.org"), ("x-user", "anna@example.org")]
        assert desk.client.get("/", headers=doubled).status_code == 401
        named = {b"x-user": "Zo\u00eb".encode()}
        assert "Zo\u00eb" in desk.client.get("/", headers=named).text
        forwarded = {**anna, "x-forwarded-for": "10.9.9.9"}
        assert desk.client.get("/", headers=forwarded).status_code == 200
    with open_desk(proxy=PROXY, signed_in=False, client=("::ffff:10.1.2.3", 5)) as desk:
        assert desk.client.get("/", headers=anna).status_code == 200
    forged = {**anna, "x-forwarded-for": "10.1.2.3", "forwarded": "for=10.1.2.3"}
    for peer in ("10.1.2.4", "127.0.0.1"):
        with open_desk(proxy=PROXY, signed_in=False, client=(peer, 5)) as desk:
            assert desk.client.get("/", headers=forged).status_code == 401
            assert desk.client.get(desk.service.access.link, headers=forged).status_code == 401


def test_another_host_needs_a_proxy(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match=r"\[proxy\] address and user_header"):
        require_sign_in_proxy(DeskSettings(cases=tmp_path), "0.0.0.0")
    require_sign_in_proxy(DeskSettings(cases=tmp_path, proxy=PROXY), "0.0.0.0")
    require_sign_in_proxy(DeskSettings(cases=tmp_path), "127.0.0.1")
    typed = ["--host", "0.0.0.0", "--no-browser", "--cases", str(tmp_path)]
    assert isinstance(CliRunner().invoke(command, typed).exception, InvalidSettingError)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[proxy]\naddress = 'x'\nuser_header = 'X'\n", "proxy.address"),
        ("colour = 1\n", "colour: no such setting"),
        ("roots = ['gone']\n", "is not a folder"),
        ("[[reviewers]]\nname = 'a'\n[[reviewers]]\nname = 'a'\n", "the same name"),
    ],
)
def test_a_wrong_desk_file_is_explained(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "desk.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSettingError, match=problem):
        read_desk_settings(file, None)


OUTSIDE = ["../../desk.lock", "..%2f..%2fdesk.lock", "%2e%2e/%2e%2e/desk.lock", "/etc/passwd"]
OUTSIDE += ["stills/../../log.jsonl", "keyframes/../log.jsonl", "keyframes/%2e%2e/log.jsonl"]
OUTSIDE += ["link.json", "log.jsonl", "answers.lance/_versions", "original/a.mp4", "a%00.json"]


def test_paths_that_lead_out_of_the_evidence_are_refused(open_desk, clip_bytes, tmp_path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("secret")
    with open_desk(roots=(tmp_path / "in",)) as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.service.store.select()
        (case.folder / "evidence").mkdir(exist_ok=True)
        (case.folder / "evidence" / "link.json").symlink_to(secret)
        for path in OUTSIDE:
            reply = desk.client.get(f"/cases/{case.id}/{path}")
            assert reply.status_code in {401, 404}, path
            assert "secret" not in reply.text
        for case_id in ("%2e%2e%2f", case.id.upper() + "x", "0" * 16):
            assert desk.client.get(f"/cases/{case_id}/result.json").status_code == 404
            assert desk.client.get(f"/batches/{case_id}/").status_code == 404
        for folder in ("/etc", "..", str(tmp_path), f"{tmp_path}/in/../"):
            reply = desk.drop(folder=folder)
            assert reply.status_code == 422, folder
        assert len(desk.service.store.select()) == 1
        assert desk.client.get("/?since=yesterday").status_code == 422


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.mp4", "passwd.mp4"),
        ("..\\..\\boot.mp4", "boot.mp4"),
        ("..", "unnamed"),
        ("", "unnamed"),
        (".hidden.mp4", "hidden.mp4"),
        ("a\x00\x1b[31m.mp4", "a\ufffd\ufffd[31m.mp4"),
        ("x" * 300 + ".mp4", "x" * 196 + ".mp4"),
        (HOSTILE + ".mp4", "script><img src=x onerror=alert(1)>\"'{{7*7}}.mp4"),
    ],
)
def test_names_of_files_lose_folders_and_controls(given: str, kept: str) -> None:
    assert sanitise_upload_name(given) == kept
    assert len(sanitise_upload_name(given).encode()) <= 255


def test_large_and_slow_uploads_are_refused(tmp_path: Path, clip_bytes) -> None:
    settings = DeskSettings(cases=tmp_path / "desk", max_mb=1, upload_s=1.0)
    app = create_desk_app(settings, trusted=True)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        base = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=base, follow_redirects=True) as client:
            page = client.get(app.state.desk.access.link).text
            client.headers["origin"] = base
            token = page.split('name="form_token" value="')[1].split('"')[0]
            data = {"form_token": token, "reviewers": next(iter(app.state.desk.sets))}
            files = {"clips": ("big.mp4", io.BytesIO(bytes(2 << 20)))}
            assert client.post("/cases", data=data, files=files).status_code == 413
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        twice = f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 4\r\n"
        twice += f"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\ncookie: {cookie}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as smuggling:
            smuggling.sendall(twice.encode())
            replies = b"".join(iter(lambda: smuggling.recv(9999), b""))
            assert replies.startswith(b"HTTP/1.1 400")
            assert replies.count(b"HTTP/1.1") == 1
        head = f"POST /cases HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: {base}\r\n"
        head += f"cookie: {cookie}\r\ncontent-type: multipart/form-data; boundary=x\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.sendall((head + "content-length: 1000\r\n\r\n--x\r\n").encode())
            assert b"408" in slow.recv(100)
        assert app.state.desk.store.select() == []
    finally:
        server.should_exit = True
        thread.join(30)
