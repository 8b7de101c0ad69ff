"""An AsyncOpenAI loop that decodes in threads and keeps its answers in a JSONL file."""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openai import AsyncOpenAI
from plain import CONNECTIONS, content, jpegs


async def ask_all(paths: list[Path], url: str, out: Path) -> int:
    """Ask about every clip; how many answers were kept."""
    client = AsyncOpenAI(base_url=url, api_key="none")
    free, loop = asyncio.Semaphore(CONNECTIONS), asyncio.get_running_loop()
    with out.open("w", encoding="utf-8") as file, ThreadPoolExecutor(2) as decoders:

        async def ask(path: Path) -> None:
            async with free:
                pictures = await loop.run_in_executor(decoders, jpegs, path)
                message = {"role": "user", "content": content(pictures)}
                reply = await client.chat.completions.create(
                    model="still", messages=[message], max_tokens=2048, temperature=0
                )
                text = reply.choices[0].message.content
                file.write(json.dumps({"clip": path.name, "text": text}) + "\n")

        await asyncio.gather(*map(ask, paths))
    return len(out.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    listing, base_url, folder = sys.argv[1:]
    clips = [Path(line) for line in Path(listing).read_text(encoding="utf-8").split()]
    print(json.dumps({"n": asyncio.run(ask_all(clips, base_url, Path(folder) / "answers.jsonl"))}))
