"""Backup and restore of a run and of a campaign, by the commands of docs/deploy.md."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")

from campaigns import ANN, CAMPAIGN, in_order, record_of, tasks_of
from docs.test_consoles import read_console
from postgres import USER, Postgres
from synthesise import ClipRecipe, synthesise
from unreel.annotation.ledger.connection import open_ledger
from warm import Warm

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
COMMANDS = [command for command, _ in read_console(PAGE.partition("\n## Backup and restore")[2])]


@pytest.fixture
def programs(tmp_path: Path, warm: Warm) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    warm.write_program(folder)
    return folder


def run_commands(commands: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Run commands as a reader types them, and return their outputs."""
    outputs = []
    for command in commands:
        words = [shutil.which("bash") or "bash", "-c", command]
        done = subprocess.run(
            words, cwd=folder, env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        outputs.append(done.stdout)
    return outputs


def test_a_restored_run_is_intact_and_has_the_same_scores(tmp_path: Path, programs: Path) -> None:
    clips = tmp_path / "clips"
    for label in ("real", "generated/x"):
        (clips / label).mkdir(parents=True)
        for seed in range(2):
            clip = synthesise(ClipRecipe(n_frames=6, seed=seed + 2 * len(label)))
            (clips / label / f"{seed}.mp4").write_bytes(clip)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)}
    evaluate = "unreel eval clips --model coin --protocol reality --out runs/my-run"
    before = run_commands([evaluate, "unreel score runs/my-run"], tmp_path, environment)[1]
    commands = COMMANDS[:4]
    assert "runs check" in commands[2]
    *_, checked, scored = run_commands(commands, tmp_path, environment)
    assert "4" in checked
    assert scored.replace("restored", "runs") == before


def test_a_restored_campaign_has_every_judgement(
    tmp_path: Path, programs: Path, postgres: Postgres
) -> None:
    postgres.drop_database("restored")
    postgres.drop_database("backed_up")
    address = postgres.create_database("backed_up")
    tasks = tasks_of(3)
    with open_ledger(address) as ledger:
        ledger.enlist([ANN])
        ledger.open_campaign(CAMPAIGN)
        ledger.add_tasks("votes", tasks)
        ledger.assign("votes", in_order("ann", tasks))
        ledger.append(map(record_of, tasks))
        before = list(ledger.records("votes"))
    environment = {
        "PATH": f"{programs}:{postgres.programs}:/usr/bin:/bin",
        "UNREEL_LEDGER": address,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGUSER": USER,
        "PGPASSWORD": postgres.password,
    }
    commands = COMMANDS[4:]
    assert [command.split()[0] for command in commands] == [
        "pg_dump",
        "createdb",
        "pg_restore",
        "unreel",
    ]
    run_commands(commands, tmp_path, environment)
    with open_ledger(postgres.address("restored")) as ledger:
        assert list(ledger.records("votes")) == before
