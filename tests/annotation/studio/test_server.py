"""Label Studio is started safely, is found again, comes back after -9, and leaves nothing behind."""

import stat
from pathlib import Path

import httpx2
import pytest

from studio import Studio
from unreel.annotation.studio.client import (
    LabelStudioServer,
    LabelStudioServerSettings,
    build_studio_environment,
    find_label_studio_program,
    find_studio_connection,
    load_studio_secrets,
)
from unreel.core.errors import InvalidSettingError, MachineError, UnreadableSourceError

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(900)]


@pytest.mark.slow
def test_it_answers_and_keeps_its_rows_and_accounts_over_a_kill(studio: Studio) -> None:
    def ask() -> str:
        headers = {"Authorization": f"Token {studio.token}"}
        url = f"{studio.address}/api/current-user/whoami"
        return str(httpx2.get(url, headers=headers, trust_env=False, timeout=60).json()["email"])

    before, pids = ask(), studio.pids
    studio.kill()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    studio.start()
    assert ask() == before == "unreel@localhost"


def test_nobody_signs_up_without_the_link(studio: Studio) -> None:
    with httpx2.Client(base_url=studio.address, trust_env=False, timeout=60) as browser:
        browser.get("/user/signup/")
        form = {"email": "stranger@example.org", "password": "a-long-password-1"}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post("/user/signup/", data=form).status_code == 403


def test_no_secret_is_in_its_arguments_and_its_files_are_for_their_owner(studio: Studio) -> None:
    own = load_studio_secrets(studio.folder)
    for pid in studio.pids:
        arguments = Path(f"/proc/{pid}/cmdline").read_text()
        assert own.token not in arguments
        assert own.password not in arguments
    for name in ("secrets.json", "studio.json", "studio.log"):
        assert stat.S_IMODE((studio.folder / name).stat().st_mode) == 0o600


def test_a_taken_port_is_refused_because_it_would_silently_take_another(studio: Studio) -> None:
    with pytest.raises(InvalidSettingError, match="give another with --port"):
        LabelStudioServer(studio.plan)


def test_a_program_that_ends_at_once_shows_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "label-studio"
    program.write_text("#!/bin/sh\necho the disk is full\nexit 3\n")
    program.chmod(0o755)
    plan = LabelStudioServerSettings(
        program=find_label_studio_program(program), folder=tmp_path / "state", port=1 << 14
    )
    server = LabelStudioServer(plan)
    with pytest.raises(MachineError, match="Label Studio ended") as caught:
        server.wait_until_up(lambda _said: None)
    assert "the disk is full" in "".join(caught.value.__notes__)


def test_a_missing_program_says_how_to_install_it_apart(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="environment of its own"):
        find_label_studio_program(tmp_path / "label-studio")


def test_the_settings_are_the_safe_ones(tmp_path: Path) -> None:
    plan = LabelStudioServerSettings(
        program=tmp_path,
        folder=tmp_path,
        database="postgresql://me:p%40ss@db.example:6543/led_studio",
    )
    told = build_studio_environment(plan, load_studio_secrets(tmp_path))
    assert told["POSTGRE_PASSWORD"] == "p@ss"
    assert told["POSTGRE_PORT"] == "6543"
    assert told["LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"] == "true"
    assert told["SSRF_PROTECTION_ENABLED"] == "true"
    assert told["COLLECT_ANALYTICS"] == "false"
    assert told["SENTRY_DSN"] == ""
    assert "p@ss" not in repr(plan)


def test_no_server_and_no_token_are_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    with pytest.raises(InvalidSettingError, match="unreel annotate up"):
        find_studio_connection(tmp_path)
    with pytest.raises(InvalidSettingError, match="export LABEL_STUDIO_API_KEY"):
        find_studio_connection(tmp_path, url="https://labels.example.org")
    (tmp_path / "studio.json").write_text("[]")
    with pytest.raises(UnreadableSourceError, match="must contain a JSON object"):
        find_studio_connection(tmp_path)
