"""The same work by inspect_ai: a solver that decodes, its own client, its own log."""

import asyncio
import base64
import json
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, TaskState, generate, solver
from plain import CONNECTIONS, PROMPT, jpegs


@solver
def show():
    """Puts the frames of the clip before the question."""

    async def solve(state: TaskState, _generate: Generate) -> TaskState:
        pictures = await asyncio.to_thread(jpegs, Path(state.metadata["clip"]))
        urls = [f"data:image/jpeg;base64,{base64.b64encode(data).decode()}" for data in pictures]
        shown = [ContentImage(image=url) for url in urls]
        state.messages = [ChatMessageUser(content=[*shown, ContentText(text=PROMPT)])]
        return state

    return solve


if __name__ == "__main__":
    listing, base_url, folder = sys.argv[1:]
    clips = Path(listing).read_text(encoding="utf-8").split()
    samples = [Sample(input="-", target="<answer>0", metadata={"clip": clip}) for clip in clips]
    task = Task(dataset=samples, solver=[show(), generate()], scorer=includes())
    (log,) = inspect_eval(
        task,
        model="openai-api/still/still",
        model_base_url=base_url,
        model_args={"api_key": "none"},
        max_connections=CONNECTIONS,
        max_samples=CONNECTIONS,
        max_tokens=2048,
        temperature=0,
        log_dir=str(Path(folder) / "logs"),
        display="none",
    )
    print(json.dumps({"n": sum(sample.error is None for sample in log.samples or [])}))
