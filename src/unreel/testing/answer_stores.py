"""Contract tests that every `unreel.asking.answer_store.AnswerStore` must pass, ours and yours.

class TestMine(AnswerStoreKit):
    @pytest.fixture
    def store(self) -> AnswerStore:
        return MyAnswerStore()
"""
# ruff: noqa: S101  these methods are tests

from unreel.asking.answer_store import AnswerStore, QuestionClaim, QuestionResult, StoredAnswer
from unreel.core.answer import Reply, Usage
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.question import Condition, Question
from unreel.protocols.protocol import get_protocol, list_protocol_names


def sample_result(name: str, reply: Reply) -> QuestionResult:
    """Build the result of a question about the clip `name`."""
    return QuestionResult(
        reviewer="sample",
        question=Question(
            subject=compute_placeholder_clip_id("sample clip", name),
            instrument=get_protocol(list_protocol_names("clip")[0]).instrument,
            condition=Condition(),
        ),
        prompt="Is this video real?",
        inputs=(),
        box_space="unit",
        outcome=reply,
        cost_usd=None,
    )


class AnswerStoreKit:
    """Tests of a store of answers; a subclass gives the fixture `store`, an empty store."""

    def test_a_stored_answer_is_found_unchanged(self, store: AnswerStore) -> None:
        usage = Usage(input_tokens=3, output_tokens=4, is_estimated=True)
        for name, text in enumerate(("real", "", "\0 \u2028 {", "x" * 100_000)):
            reply = Reply(text=text, latency_us=5, usage=usage, answered_by="other")
            result = sample_result(str(name), reply)
            assert store.find(result.key) is None
            assert store.claim(result.key) is QuestionClaim.OURS
            store.store(result, reply)
            expected = StoredAnswer(reply=reply, box_space="unit")
            assert store.find(result.key) == store.claim(result.key) == expected

    def test_a_reply_without_tokens_is_found(self, store: AnswerStore) -> None:
        result = sample_result("a", reply := Reply(text="fake"))
        assert store.claim(result.key) is QuestionClaim.OURS
        store.store(result, reply)
        assert store.find(result.key) == StoredAnswer(reply=reply, box_space="unit")

    def test_a_released_question_can_be_claimed_again(self, store: AnswerStore) -> None:
        key = sample_result("a", Reply(text="")).key
        assert store.claim(key) is QuestionClaim.OURS
        store.release(key)
        assert store.find(key) is None
        assert store.claim(key) is QuestionClaim.OURS
