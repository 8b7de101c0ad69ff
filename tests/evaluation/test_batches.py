"""`unreel eval --batch`: the same rows at half the price, each question asked once, also after kills."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from batch_server import BatchProvider, serve_batches
from chat import says
from net.commands import call
from unreel.asking.answer_table import ANSWERS
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable

MAIN = "from unreel.cli.main import main; main()"
PRICES = """
[models."openai/gpt-4.1"]
input_usd_per_million = 2
output_usd_per_million = 8
"""
N_CONDITIONS = 50


def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """An answer that depends on the question; some are rejected, refused or empty."""
    number = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()[0]
    if number < 12:
        return 400, {"error": {"message": "the picture is too small", "code": "bad_image"}}
    status, reply = says(f"<answer>{number % 2}</answer>", prompt_tokens=1000 + number, model="gpt-4.1")  # fmt: skip
    if number < 24:
        reply["choices"][0]["message"] |= {"content": None, "refusal": "I cannot"}
    return status, reply


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four clips and prices."""
    monkeypatch.chdir(tmp_path)
    assert call("benchmarks", "example", "list", "--out", "mine").exit_code == 0
    (tmp_path / "prices.toml").write_text(PRICES)
    return tmp_path


def type_eval(port: int, out: str, *more: str, n_conditions: int = 2) -> list[str]:
    conditions = [
        f"sampling=uniform-{number % 5 + 1},max_pixels={4096 + 16 * number}"
        for number in range(n_conditions)
    ]
    typed = ["eval", "mine/clips.csv", "--protocol", "reality", "--out", out, "--prices", "prices.toml"]  # fmt: skip
    typed += ["--model", f"openai/gpt-4.1@http://127.0.0.1:{port}/v1", "--json", *more]
    return typed + [part for text in conditions for part in ("--condition", text)]


def read_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of a run by key, without times, and with the cost apart."""
    table = LanceTable(StorageLocation(str(folder)) / "answers.lance", ANSWERS)
    apart = {"latency_us", "cost_usd", "finished_at", "started_at", "at"}
    return {
        row["key"]: {name: value for name, value in row.items() if name not in apart}
        for row in table.rows()
    }


def sum_cost(folder: Path) -> float:
    table = LanceTable(StorageLocation(str(folder)) / "answers.lance", ANSWERS)
    return sum(row["cost_usd"] or 0 for row in table.rows(["cost_usd"]))


@pytest.mark.slow
def test_200_questions_with_three_kills_give_the_rows_of_single_questions(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = BatchProvider(answer, n_polls=3)
    process: list[subprocess.Popen[bytes]] = []
    kill_at: list[str] = []

    def kill(event: str) -> None:
        if kill_at and event == kill_at[0]:
            kill_at.clear()
            os.kill(process[-1].pid, signal.SIGKILL)

    provider.on_event = kill
    with serve_batches(provider) as port:
        monkeypatch.setenv("UNREEL_KEY_HOSTS", f"127.0.0.1:{port}=OPENAI_API_KEY")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
        alone = call(*type_eval(port, "alone", n_conditions=N_CONDITIONS))
        assert json.loads(alone.stdout), alone.stderr
        assert provider.n_asked_alone == 4 * N_CONDITIONS
        provider.asked.clear()

        typed = type_eval(port, "batched", "--batch", n_conditions=N_CONDITIONS)
        for event in ("upload", "create", "content"):
            kill_at[:] = [event]
            with Path("log.txt").open("wb") as log:
                process.append(
                    subprocess.Popen([sys.executable, "-c", MAIN, *typed], stdout=log, stderr=log)
                )
                assert process[-1].wait(timeout=120) == -signal.SIGKILL, Path("log.txt").read_text()
            if event != "upload":
                refused = call(*type_eval(port, "batched", n_conditions=N_CONDITIONS))
                assert "Continue with --batch" in str(refused.exception)
        done = call(*typed)
        assert done.exit_code == 1, done.stderr
        again = call(*typed)

    rows = read_rows(work / "batched")
    assert rows == read_rows(work / "alone")
    assert len(rows) == 4 * N_CONDITIONS
    assert len({row["failure_reason"] for row in rows.values()}) == 3
    assert max(provider.asked.values()) == 1
    assert provider.asked.total() == 4 * N_CONDITIONS
    assert provider.n_asked_alone == 4 * N_CONDITIONS
    assert len(provider.batches) == 1
    assert provider.events.count("upload") == 2
    assert provider.keys == {"Bearer sk-secret-key"}
    assert sum_cost(work / "batched") == pytest.approx(sum_cost(work / "alone") / 2)
    assert not (work / "batched" / "batches.json").exists()
    assert json.loads(again.stdout)["outcome"]["answers"]["done"] == 0
    assert json.loads(again.stdout)["scores"] == json.loads(alone.stdout)["scores"]


@pytest.mark.parametrize(
    ("end_status", "reasons"),
    [
        ("expired", {"out-of-time": 4}),
        pytest.param("failed", {"rate-limited": 8}, marks=pytest.mark.slow),
    ],
)
def test_a_batch_that_ends_early_gives_rows_with_a_reason(
    work: Path, end_status: str, reasons: dict[str, int]
) -> None:
    provider = BatchProvider(lambda _body: says("<answer>1</answer>", model="gpt-4.1"))
    provider.end_status = end_status
    with serve_batches(provider) as port:
        done = call(*type_eval(port, "r", "--batch"))
        card = json.loads(done.stdout)["outcome"]["answers"]
        assert (card["failures"], card["done"]) == (reasons, 8 - sum(reasons.values()))
        provider.end_status = "completed"
        done = call(*type_eval(port, "r", "--batch", "--retry-failed"))
    assert done.exit_code == 0, done.stderr
    assert {row["failure_reason"] for row in read_rows(work / "r").values()} == {None}
    assert provider.asked.total() == 8 + sum(reasons.values())


def test_the_forecast_has_half_the_price(work: Path) -> None:
    whole, half = (
        json.loads(call(*type_eval(9, "r", "--dry-run", *more)).stdout)["cost_usd"]
        for more in ((), ("--batch",))
    )
    assert half == pytest.approx(whole / 2)


@pytest.mark.slow
def test_a_cost_limit_counts_the_questions_in_batches_at_half_the_price(work: Path) -> None:
    provider = BatchProvider(lambda _body: says("<answer>1</answer>", model="gpt-4.1"))
    limit = ("--max-cost-usd", "0.03", "--condition", "max_pixels=4096")
    with serve_batches(provider) as port:
        done = call(*type_eval(port, "r", "--batch", *limit, n_conditions=10))
    answers = json.loads(done.stdout)["outcome"]["answers"]
    assert answers["failures"].keys() == {"budget-spent"}
    assert 0 < answers["done"] < 40
    assert provider.asked.total() == answers["done"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("--model", "vllm/x"), "vllm/x has no batches"),
        (("--model", "coin"), "coin has no batches"),
        (
            ("--model", "openai/x@http://127.0.0.1:9/v1", "--engine", "ray"),
            "cannot be combined with --engine ray",
        ),
    ],
)
def test_what_has_no_batches_is_refused(work: Path, typed: tuple[str, ...], words: str) -> None:
    done = call("eval", "mine/clips.csv", "--protocol", "reality", "--batch", *typed)
    assert words in str(done.exception)
    assert not (work / "runs").exists()
