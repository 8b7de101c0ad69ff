"""The models that the other tests run are of the real architectures, and small."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from unreel.protocols.protocol import get_protocol
from unreel.reviewers.local.input_format import FamilyName

pytestmark = pytest.mark.filterwarnings("default")
CLASSES: dict[FamilyName, str] = {
    "qwen2.5-vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3-vl": "Qwen3VLForConditionalGeneration",
    "videollama3": "VideoLlama3ForConditionalGeneration",
}


@pytest.mark.parametrize("family", CLASSES)
def test_a_tiny_model_is_of_the_real_class_and_has_few_weights(
    tiny: Callable[[FamilyName], Path], family: FamilyName
) -> None:
    model = transformers.AutoModelForImageTextToText.from_pretrained(tiny(family))
    assert type(model).__name__ == CLASSES[family]
    assert sum(weight.numel() for weight in model.parameters()) < 2_000_000


def test_digits_are_spelled_one_by_one_and_words_of_the_prompts_are_whole(
    tiny: Callable[[FamilyName], Path],
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("qwen2.5-vl"))
    assert tokenizer.tokenize("[10, 237]") == ["[", "1", "0", ",", "Ġ", "2", "3", "7", "]"]
    prompt = get_protocol("trace").prompt("fine-tuning").text
    assert len(tokenizer(prompt).input_ids) < 1.5 * len(prompt.split())
