"""Reviewer that runs a local model and answers waiting requests in batches."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

import torch

from unreel.core.answer import Reply, Usage
from unreel.core.errors import UnreelError
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.protocol import asks_to_think
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.endpoint.model_families import build_thinking_request_fields, get_model_family
from unreel.reviewers.local.checkpoint import LocalCheckpoint
from unreel.reviewers.local.encoder import EncodedRequest, RequestEncoder
from unreel.reviewers.local.loading import load_local_model
from unreel.reviewers.message_parts import build_rejected_request_failure

Outcome = Reply | Failure
LESS = "Show fewer frames, lower max_pixels, or use a device with more memory"


@dataclass(frozen=True)
class _WaitingRequest:
    request: ReviewRequest
    answered: "asyncio.Future[Outcome]"
    loop: asyncio.AbstractEventLoop
    since_s: float = field(default_factory=time.monotonic)

    def settle(self, outcome: Outcome) -> None:
        def hand_over() -> None:
            if not self.answered.done():
                self.answered.set_result(outcome)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(hand_over)


class LocalReviewer:
    """Reviewer that runs one local model with greedy decoding, in a thread of its own.

    The batch size is at most `most`; it is reduced if the device runs out of memory.
    """

    def __init__(
        self,
        checkpoint: LocalCheckpoint,
        *,
        max_tokens: int | None = None,
        most: int = 16,
        box_space: str | None = None,
    ) -> None:
        self._checkpoint, self._most, self._box_space = checkpoint, most, box_space
        self._max_tokens = max_tokens or checkpoint.max_tokens
        self._name = checkpoint.reviewer_name(max_tokens=self._max_tokens, box_space=box_space)
        self._encoder = RequestEncoder.open(checkpoint.folder, checkpoint.taught)
        self._waiting: SimpleQueue[_WaitingRequest | None] = SimpleQueue()
        self._worker: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"LocalReviewer({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset({InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:
        return self._box_space or self._encoder.box_space(clip_input)

    async def answer(self, request: ReviewRequest) -> Outcome:
        thinking = request.condition.thinking
        if thinking != "default":
            family = get_model_family(self._checkpoint.taught.family)
            asked = asks_to_think(request.prompt)
            switched = build_thinking_request_fields(family, thinking, asked=asked)
            if isinstance(switched, str):
                return build_rejected_request_failure(switched)
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="local model", daemon=True)
            self._worker.start()
        loop = asyncio.get_running_loop()
        waiting = _WaitingRequest(request, loop.create_future(), loop)
        self._waiting.put(waiting)
        return await waiting.answered

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._waiting.put(None)
            await asyncio.to_thread(worker.join)

    def _work(self) -> None:
        """Answer queued requests in batches until the reviewer is closed; then reject the rest."""
        model: _LoadedModel | Failure | None = None
        while (first := self._waiting.get()) is not None:
            batch: list[tuple[_WaitingRequest, EncodedRequest]] = []
            following: _WaitingRequest | None = first
            while following is not None:
                model = model or _load_model_or_failure(self._checkpoint, self._encoder.end_id)
                encoded = self._encode(following, model)
                if encoded is not None:
                    batch.append((following, encoded))
                following = self._next() if len(batch) < self._most else None
            if batch and isinstance(model, _LoadedModel):
                self._answer(batch, model)
        while (waiting := self._next()) is not None:
            waiting.settle(Failure(FailureReason.STOPPED, "the reviewer was closed"))

    def _next(self) -> _WaitingRequest | None:
        try:
            following = self._waiting.get_nowait()
        except Empty:
            return None
        if following is None:
            self._waiting.put(None)  # keep the end marker for the outer loop
        return following

    def _encode(
        self, waiting: _WaitingRequest, model: "_LoadedModel | Failure"
    ) -> EncodedRequest | None:
        if waiting.answered.cancelled():
            return None
        if isinstance(model, Failure):
            waiting.settle(model)
            return None
        try:
            encoded = self._encoder.encode(waiting.request)
        except Exception as error:  # noqa: BLE001  one question fails, the reviewer goes on
            encoded = Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if (
            isinstance(encoded, EncodedRequest)
            and encoded.n_prompt + self._max_tokens > model.longest
        ):
            detail = (
                f"the prompt takes {encoded.n_prompt} tokens and an answer up to "
                f"{self._max_tokens}, and the model holds {model.longest}. Show fewer frames, or "
                "lower max_pixels or max_tokens"
            )
            encoded = Failure(FailureReason.TOO_LONG, detail)
        if isinstance(encoded, Failure):
            waiting.settle(encoded)
            return None
        return encoded

    def _answer(
        self, batch: Sequence[tuple[_WaitingRequest, EncodedRequest]], model: "_LoadedModel"
    ) -> None:
        try:
            outputs = self._generate([encoded for _, encoded in batch], model)
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                detail = f"{str(error).partition('.')[0]}. {LESS}"
                batch[0][0].settle(Failure(FailureReason.OUT_OF_MEMORY, detail))
                return
            self._most = len(batch) // 2
            for half in (batch[: self._most], batch[self._most :]):
                self._answer(half, model)
            return
        except Exception as error:  # noqa: BLE001  these questions fail, the reviewer goes on
            failure = Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
            for waiting, _ in batch:
                waiting.settle(failure)
            return
        for (waiting, encoded), ids in zip(batch, outputs, strict=True):
            text = self._encoder.decode(ids)
            if not text.strip():
                detail = f"{len(ids)} tokens without words"
                waiting.settle(Failure(FailureReason.EMPTY_REPLY, detail))
                continue
            usage = Usage(input_tokens=encoded.n_prompt, output_tokens=len(ids))
            latency_us = round((time.monotonic() - waiting.since_s) * 1_000_000)
            waiting.settle(Reply(text=text, latency_us=latency_us, usage=usage))

    def _generate(
        self, encoded: Sequence[EncodedRequest], model: "_LoadedModel"
    ) -> list[list[int]]:
        batch = self._encoder.collate(encoded, pad="left")
        on_device = {name: values.to(model.device) for name, values in batch.items()}
        with torch.inference_mode():
            outputs = model.model.generate(
                **on_device,
                max_new_tokens=self._max_tokens,
                do_sample=False,
                eos_token_id=model.ends,
                pad_token_id=self._encoder.pad_id,
            )
        answers: list[list[int]] = outputs[:, batch["input_ids"].shape[1] :].tolist()
        for ids in answers:  # up to and including the first end token
            end = next((i for i, token in enumerate(ids) if token in model.ends), len(ids))
            del ids[end + 1 :]
        return answers


@dataclass(frozen=True)
class _LoadedModel:
    model: Any
    device: str
    ends: list[int]
    longest: int


def _load_model_or_failure(checkpoint: LocalCheckpoint, end_id: int) -> _LoadedModel | Failure:
    """Load the model on CUDA, else on the CPU; return a failure if it does not fit or load."""
    device, dtype = "cpu", torch.float32
    if torch.cuda.is_available():
        device, dtype = "cuda", torch.bfloat16
    try:
        model = load_local_model(checkpoint.folder, device=device, dtype=dtype).eval()
    except torch.OutOfMemoryError as error:
        detail = f"the model does not fit: {str(error).partition('.')[0]}. {LESS}"
        return Failure(FailureReason.OUT_OF_MEMORY, detail)
    except UnreelError as error:
        return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {error}")
    end_ids = model.generation_config.eos_token_id
    ends = {end_id, *(end_ids if isinstance(end_ids, list) else [end_ids])} - {None}
    longest = model.config.get_text_config().max_position_embeddings
    return _LoadedModel(model=model, device=device, ends=sorted(ends), longest=longest)
