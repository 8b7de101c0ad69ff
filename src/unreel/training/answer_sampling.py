"""Answers drawn from a model, several to a question."""

from typing import Any

import torch

from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.encoder import RequestEncoder


class AnswerSampler:
    """Sampler of answers. The samples of a question depend only on the seed and that question.

    Args:
        model: A local model.
        encoder: Encoder of the model.
        max_tokens: Maximum number of tokens of an answer.
        temperature: Above 1 flattens the distribution; 0 is greedy.
        seed: Seed of all samples.
    """

    def __init__(
        self, model: Any, encoder: RequestEncoder, *, max_tokens: int, temperature: float, seed: int
    ) -> None:
        self._model, self._encoder = model, encoder
        self._max_tokens, self._temperature, self._seed = max_tokens, temperature, seed

    def draw(self, sheet: ReviewRequest, n: int) -> list[str] | Failure:
        """Sample `n` answers to `sheet`, or return why the model cannot be asked."""
        encoded = self._encoder.encode(sheet)
        if isinstance(encoded, Failure):
            return encoded
        batch = self._encoder.collate([encoded] * n, pad="left")
        device = next(self._model.parameters()).device
        how: dict[str, Any] = {"do_sample": False}
        if self._temperature > 0:
            how = {"do_sample": True, "temperature": self._temperature, "top_k": 0, "top_p": 1.0}
        was_training = self._model.training
        self._model.eval()
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(int(digest("draw", str(self._seed), sheet.key)[:15], 16))
            made = self._model.generate(
                **{name: values.to(device) for name, values in batch.items()},
                max_new_tokens=self._max_tokens,
                pad_token_id=self._encoder.pad_id,
                **how,
            )
        self._model.train(was_training)
        return [self._encoder.decode(row) for row in made[:, batch["input_ids"].shape[1] :]]
