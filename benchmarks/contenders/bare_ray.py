"""A Ray Data pipeline: decoding in tasks, asking in one actor with an AsyncOpenAI client, Parquet at the end."""

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
import ray.data

sys.path.insert(0, str(Path(__file__).parent))
from plain import CONNECTIONS, content, jpegs


def decode(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its pictures."""
    sys.path.insert(0, row["code"])
    return {"clip": row["clip"], "pictures": jpegs(Path(row["clip"]))}


class Ask:
    """Asks about a batch of rows at once."""

    def __init__(self, url: str) -> None:
        from openai import AsyncOpenAI

        self._client = AsyncOpenAI(base_url=url, api_key="none")
        self._loop = asyncio.new_event_loop()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        texts = self._loop.run_until_complete(self._ask(batch["pictures"]))
        return {"clip": batch["clip"], "text": texts}

    async def _ask(self, rows: Any) -> list[str]:
        return list(await asyncio.gather(*(self._one(list(pictures)) for pictures in rows)))

    async def _one(self, pictures: list[bytes]) -> str:
        message: Any = {"role": "user", "content": content(pictures)}
        reply = await self._client.chat.completions.create(
            model="still", messages=[message], max_tokens=2048, temperature=0
        )
        return reply.choices[0].message.content or ""


if __name__ == "__main__":
    listing, base_url, folder = sys.argv[1:]
    clips = Path(listing).read_text(encoding="utf-8").split()
    code = str(Path(__file__).parent)
    environment = {"env_vars": {"PYTHONPATH": code}}
    # More logical processors than there are: Ray Data would keep one of two for writing.
    ray.init(
        num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
        runtime_env=environment,
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    began_s = time.monotonic()
    rows = ray.data.from_items([{"clip": clip, "code": code} for clip in clips])
    asked = rows.repartition(len(clips) // CONNECTIONS + 1).map(decode, concurrency=os.cpu_count())
    answers = asked.map_batches(
        Ask, fn_constructor_args=(base_url,), batch_size=CONNECTIONS, concurrency=1, num_cpus=0
    )
    answers.write_parquet(str(Path(folder) / "answers"))
    seconds = time.monotonic() - began_s
    n = ray.data.read_parquet(str(Path(folder) / "answers")).count()
    print(json.dumps({"n": n, "seconds": seconds}))
