"""Which model lies in a folder, how it is asked, and what it may not do here."""

import json
import pickle
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from local.sheets import ask, shown
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    FamilyName,
    LocalCheckpoint,
    compute_weights_digest,
    read_checkpoint,
    write_checkpoint_input_spec,
)
from unreel.reviewers.local.loading import load_local_model
from unreel.reviewers.local.reviewer import LocalReviewer
from unreel.testing.reviewers import run

pytestmark = pytest.mark.filterwarnings("default")
Tiny = Callable[[FamilyName], Path]
VIDEO = CheckpointInputSpec(family="qwen2.5-vl", input="video", box_space="model-input")


def load(folder: Path) -> Any:
    return load_local_model(folder, device="cpu", dtype=torch.float32)


@pytest.fixture
def copy(tiny: Tiny, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny("qwen2.5-vl"), tmp_path / "copy"))


@pytest.fixture
def adapter(tiny: Tiny, tmp_path: Path) -> Path:
    """An adapter of the tiny model with weights that change its answers."""
    base = tiny("qwen2.5-vl")
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    torch.manual_seed(1)
    folder = tmp_path / "adapter"
    peft.get_peft_model(load(base), config).save_pretrained(folder)
    for file in base.iterdir():
        if "token" in file.name or "processor" in file.name or "chat" in file.name:
            shutil.copy(file, folder)
    told = {"base": str(base), "base_digest": compute_weights_digest(base)}
    write_checkpoint_input_spec(VIDEO.model_copy(update=told), folder)
    return folder


def test_a_model_that_unreel_did_not_train_is_asked_like_its_family(tiny: Tiny) -> None:
    found = read_checkpoint(tiny("qwen3-vl"))
    assert not found.is_ours
    assert found.taught == CheckpointInputSpec(
        family="qwen3-vl", input="frames", box_space="permille"
    )
    assert read_checkpoint(tiny("qwen3-vl"), form="video").taught.input == "video"


def test_a_checkpoint_is_asked_as_it_was_taught_and_in_no_other_form(copy: Path) -> None:
    write_checkpoint_input_spec(VIDEO, copy)
    assert read_checkpoint(copy).taught == VIDEO
    with pytest.raises(InvalidSettingError, match="trained on video, not on frames"):
        read_checkpoint(copy, form="frames")


def test_the_same_weights_have_the_same_name_wherever_they_lie(copy: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(copy, tmp_path / "elsewhere" / "copy")
    (moved / "README.md").write_text("a card")
    assert read_checkpoint(copy).name == read_checkpoint(moved).name
    assert read_checkpoint(copy).name.startswith("local/copy@")


@pytest.mark.parametrize("change", ["model.safetensors", "chat_template.jinja", "unreel.json"])
def test_what_changes_answers_changes_the_name(copy: Path, change: str) -> None:
    before = read_checkpoint(copy).name
    if change == "unreel.json":
        write_checkpoint_input_spec(VIDEO, copy)
    else:
        (copy / change).write_bytes((copy / change).read_bytes() + b" ")
    assert read_checkpoint(copy).name != before


@pytest.mark.parametrize(
    ("place", "title"),
    [("dtr/model", "dtr"), ("dtr/checkpoints/step-000100", "dtr-step-000100"), ("my-7b", "my-7b")],
)
def test_a_checkpoint_is_called_after_its_training(
    copy: Path, tmp_path: Path, place: str, title: str
) -> None:
    folder = tmp_path / "runs" / place
    shutil.copytree(copy, folder)
    assert read_checkpoint(folder).name.partition("@")[0] == f"local/{title}"


def test_an_adapter_answers_on_its_base_without_being_merged(adapter: Path, tiny: Tiny) -> None:
    found = read_checkpoint(adapter)
    assert found.base == tiny("qwen2.5-vl")
    model = load(adapter)
    assert type(model).__name__.startswith("Peft")
    sheet = ask([shown([0, 1, 2, 3])])
    bare = LocalCheckpoint(folder=tiny("qwen2.5-vl"), taught=VIDEO, is_ours=True)
    assert answer(found, sheet) != answer(bare, sheet)


def answer(checkpoint: LocalCheckpoint, sheet: Any) -> str:
    reviewer = LocalReviewer(checkpoint, max_tokens=12)
    outcome = run(reviewer, lambda: reviewer.answer(sheet))
    assert not isinstance(outcome, Failure), outcome
    return outcome.text


def test_an_adapter_of_other_weights_is_refused(adapter: Path, tmp_path: Path, tiny: Tiny) -> None:
    other = shutil.copytree(tiny("qwen2.5-vl"), tmp_path / "other")
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    told = {"base": str(other), "base_digest": compute_weights_digest(tiny("qwen2.5-vl"))}
    write_checkpoint_input_spec(VIDEO.model_copy(update=told), adapter)
    with pytest.raises(InvalidSettingError, match="adapter of other weights"):
        load(adapter)


def test_a_folder_without_a_model_says_what_to_name(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent", Path("no such\0folder")):
        with pytest.raises(UnreadableSourceError, match="Name a folder"):
            read_checkpoint(folder)


@dataclass
class Bomb:
    canary: str

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.call, (["touch", self.canary],)


def change(file: Path, **told: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | told))


CODE = (
    "import pathlib\npathlib.Path({canary!r}).touch()\nclass Evil: pass\ndef generate(*a): pass\n"
)


def test_weights_that_can_hold_code_are_never_opened(copy: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for name in ("pytorch_model.bin", "model.bin", "training_args.bin", "optimizer.pt"):
        (copy / name).write_bytes(pickle.dumps(Bomb(str(canary))))
    load(copy)
    (copy / "model.safetensors").unlink()
    for open_it in (read_checkpoint, load):
        with pytest.raises(UnreadableSourceError, match="can contain code"):
            open_it(copy)
    assert not canary.exists()
    pickle.loads((copy / "model.bin").read_bytes())
    assert canary.exists(), "the canary sings for nobody"


def test_weights_without_a_part_of_the_model_are_refused(copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    first = min(weights)
    save_file(
        {k: v for k, v in weights.items() if k != first},
        copy / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(UnreadableSourceError, match="lack 1 parts"):
        load(copy)


@pytest.mark.parametrize("is_tied", [True, False])
def test_missing_output_weights_are_tied_or_refused_and_never_random(
    copy: Path, *, is_tied: bool
) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights.pop("lm_head.weight", None)
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    config = json.loads((copy / "config.json").read_text())
    tied = {"tie_word_embeddings": is_tied}
    change(copy / "config.json", **tied, text_config=config["text_config"] | tied)
    if is_tied:
        model = load(copy)
        inner, outer = model.get_input_embeddings(), model.get_output_embeddings()
        assert torch.equal(inner.weight, outer.weight)
    else:
        with pytest.raises(UnreadableSourceError, match=r"lm_head\.weight\. Set tie_word_embedd"):
            load(copy)


def test_an_adapter_that_can_hold_code_is_never_opened(adapter: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (adapter / "adapter_model.safetensors").unlink()
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(Bomb(str(canary))))
    with pytest.raises(UnreadableSourceError, match="can contain code"):
        load(adapter)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("config.json", {"auto_map": {"AutoModelForImageTextToText": "evil.Evil"}}),
        ("config.json", {"auto_map": {"AutoConfig": "evil.Evil"}}),
        ("config.json", {"attn_implementation": "evil/kernel"}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}),
        ("tokenizer_config.json", {"tokenizer_class": "Evil"}),
        ("processor_config.json", {"auto_map": {"AutoProcessor": "evil.Evil"}}),
        ("generation_config.json", {"custom_generate": "evil"}),
    ],
)
def test_code_of_a_folder_does_not_run(
    copy: Path, tmp_path: Path, file: str, told: dict[str, object]
) -> None:
    canary = tmp_path / "canary"
    code = CODE.format(canary=str(canary))
    (copy / "evil.py").write_text(code)
    (copy / "custom_generate").mkdir()
    (copy / "custom_generate" / "generate.py").write_text(code)
    change(copy / file, **told)
    # Refused is as good as answered without it.
    with suppress(InvalidSettingError, UnreadableSourceError, AssertionError):
        answer(read_checkpoint(copy), ask([shown([0])]))
    assert not canary.exists()


def test_an_adapter_of_another_kind_is_refused(adapter: Path) -> None:
    change(adapter / "adapter_config.json", megatron_config={"x": 1}, megatron_core="os")
    with pytest.raises(InvalidSettingError, match="not a standard LoRA adapter"):
        load(adapter)
