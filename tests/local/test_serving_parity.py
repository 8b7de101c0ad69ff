"""The gate between training and serving: vLLM answers as the model of this machine does, text for text.

One server is started, by `unreel serve`, with a tiny trained checkpoint and its adapter beside it.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

torch = pytest.importorskip("torch")
if find_spec("vllm") is None:
    pytest.skip("needs vLLM", allow_module_level=True)

from local.sheets import ask, shown
from local.taught_tiny import (
    FIRST,
    FORMS,
    N_CLIPS,
    OTHER,
    answers,
    sheets,
    taught,
    write_adapter,
    write_base,
)
from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import RetryPolicy
from unreel.reviewers.contract import Reviewer, ReviewRequest
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.model_families import detect_model_family
from unreel.reviewers.endpoint.reviewer import (
    EndpointLimits,
    EndpointReviewer,
    ModelIOFormat,
    build_chat_request_body,
)
from unreel.reviewers.local.checkpoint import FamilyName, Form, read_checkpoint
from unreel.reviewers.local.encoder import EncodedRequest, RequestEncoder
from unreel.reviewers.local.reviewer import LocalReviewer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.timeout(3600)]

MAX_TOKENS = 32
PATIENT = EndpointLimits(
    max_connections=2, patience=RetryPolicy(deadline_s=600, attempt_s=300, outage_s=300)
)
CASES = [
    pytest.param(whose, form, marks=[pytest.mark.slow] if whose == "base" else [])
    for whose in ("base", "tuned")
    for form in FORMS
]


@dataclass(frozen=True)
class Served:
    """A checkpoint and its adapter on this machine, and the names that a server has for them."""

    folders: dict[str, Path]
    models: dict[str, str]

    def local(self, whose: str, form: Form) -> LocalReviewer:
        found = read_checkpoint(self.folders[whose])
        asked = replace(found, taught=found.taught.model_copy(update={"input": form}))
        return LocalReviewer(asked, max_tokens=MAX_TOKENS)

    def endpoint(self, whose: str, form: Form) -> EndpointReviewer:
        manner = ModelIOFormat(show=form, max_tokens=MAX_TOKENS)
        return EndpointReviewer(self.models[whose], io_format=manner, limits=PATIENT)


def start(folder: Path, log: Path) -> tuple["subprocess.Popen[str]", list[str]]:
    """`unreel serve` as people type it, and the models that it names."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    typed = ["serve", folder, "--gpus", 0, "--port", port, "--max-length", 2048, "--json"]
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "2"}
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", "from unreel.cli.main import main; main()", *map(str, typed)],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=os.environ | own,  # noqa: TID251  handed on to a child
        )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return process, [each["model"] for each in json.loads("".join(lines))["models"]]
    pytest.fail(log.read_text())


def stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def served(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Trained for a minute and a half, served in half of one."""
    room = tmp_path_factory.mktemp("parity")
    folders = {"base": room / "base", "tuned": room / "tuned"}
    torch.manual_seed(0)
    write_base(tiny("qwen2.5-vl"), folders["base"], "qwen2.5-vl", steps=240)
    write_adapter(folders["base"], folders["tuned"], "qwen2.5-vl", steps=90)
    process, (tuned, base) = start(folders["tuned"], room / "log")
    yield Served(folders, {"tuned": tuned, "base": base})
    stop(process)


def reply_to(reviewer: Reviewer, asked: Sequence[ReviewRequest]) -> list[Reply]:
    """What it says of each; that it says nothing is an answer too."""

    async def work() -> list[Reply | Failure]:
        found = await asyncio.gather(*(reviewer.answer(sheet) for sheet in asked))
        await reviewer.close()
        return found

    found = asyncio.run(work())
    failed = [outcome for outcome in found if isinstance(outcome, Failure)]
    assert {failure.reason for failure in failed} <= {FailureReason.EMPTY_REPLY}, failed
    return [outcome if isinstance(outcome, Reply) else Reply(text="") for outcome in found]


def texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies]


@pytest.mark.parametrize(("whose", "form"), CASES)
def test_the_server_says_what_the_model_says_here_on_every_clip(
    served: Served, whose: str, form: Form
) -> None:
    here = reply_to(served.local(whose, form), sheets())
    there = reply_to(served.endpoint(whose, form), sheets())
    assert texts(there) == texts(here)
    assert len({*texts(here)}) > N_CLIPS / 2, "what it says does not depend on the clip"
    tokens = [
        [reply.usage and reply.usage.input_tokens for reply in side] for side in (here, there)
    ]
    assert tokens[0] == tokens[1]


def test_the_checkpoint_learned_its_clips_and_the_adapter_other_words(served: Served) -> None:
    for whose, learned in (("base", answers(FIRST)), ("tuned", answers(OTHER))):
        said = texts(reply_to(served.endpoint(whose, "video"), sheets()))
        assert sum(a == b for a, b in zip(said, learned, strict=True)) >= N_CLIPS / 2


def test_without_the_mend_of_positions_the_two_part_ways(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unreel.reviewers.local import loading

    there = texts(reply_to(served.endpoint("base", "video"), sheets()))
    monkeypatch.setattr(loading, "patch_rope_positions", lambda _model: None)
    here = texts(reply_to(served.local("base", "video"), sheets()))
    assert sum(a == b for a, b in zip(here, there, strict=True)) < N_CLIPS / 2


def test_the_same_frames_at_other_instants_are_another_question(served: Served) -> None:
    """The server keeps what it made of frames that it saw; the instants must be part of what it keeps."""
    other = [ask([shown(range(0, 60, 10), size=(56, 56), seed=37 * n)]) for n in range(6)]
    here = texts(reply_to(served.local("base", "video"), other))
    assert texts(reply_to(served.endpoint("base", "video"), other)) == here


def prompt_ids(model: str, form: Form, request: ReviewRequest) -> list[int]:
    """The prompt as the server fed it to the model."""
    address = parse_model_address(model)
    fields = {"model": address.model, "max_tokens": 1, "return_token_ids": True}
    body = build_chat_request_body(
        request, family=detect_model_family(address), show=form, fields=fields
    )
    assert isinstance(body, bytes), body
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{address.base_url}/chat/completions", body, headers)) as reply:
        ids: list[int] = json.load(reply)["prompt_token_ids"]
    return ids


def odd_sheets(family: FamilyName) -> list[ReviewRequest]:
    """Shapes that processors treat apart: odd numbers of frames, other sizes, uneven instants."""
    even = [Fraction(i, 2) for i in range(8)]
    uneven = [Fraction(0), Fraction(1001, 30_000), Fraction(9, 2), Fraction(81, 10)]
    return [
        ask([shown(even)]),
        ask([shown(even[:5], size=(100, 75), seed=3)]),
        ask([shown(range(40), size=(30, 60), seed=5)]),
        *([] if family == "qwen2.5-vl" else [ask([shown(uneven, seed=7)])]),
        ask([shown(even), shown(even, seed=9)], instrument="preference", prompt="paper"),
    ]


def require_same_prompts(folder: Path, family: FamilyName, model: str) -> None:
    for form in FORMS:
        encoder = RequestEncoder(folder, taught(family, form))
        for sheet in odd_sheets(family):
            encoded = encoder.encode(sheet)
            assert isinstance(encoded, EncodedRequest), encoded
            assert prompt_ids(model, form, sheet) == encoded.input_ids.tolist()


def test_the_server_reads_the_very_prompt_that_training_wrote(served: Served) -> None:
    require_same_prompts(served.folders["base"], "qwen2.5-vl", served.models["base"])


@pytest.mark.parametrize("family", ["qwen3-vl", "videollama3"])
def test_other_families_are_served_alike(family: FamilyName, tiny: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    write_base(tiny(family), tmp_path / "base", family, steps=250)
    (tmp_path / "base" / "unreel.json").unlink()  # so that it is served in both forms
    process, [model] = start(tmp_path / "base", tmp_path / "log")
    both = Served({"base": tmp_path / "base"}, {"base": model})
    try:
        require_same_prompts(tmp_path / "base", family, model)
        for form in FORMS:
            here = texts(reply_to(both.local("base", form), sheets()))
            assert texts(reply_to(both.endpoint("base", form), sheets())) == here
    finally:
        stop(process)
