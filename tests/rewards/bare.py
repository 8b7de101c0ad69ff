"""Bare FastAPI endpoint that receives and hashes an upload: the reference of the load test."""

import hashlib
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

app = FastAPI()


@app.post("/v1/rewards")
async def hash_upload(request: Request) -> dict[str, Any]:
    async with request.form() as form:
        data = await form["clip"].read()  # type: ignore[union-attr]
    return {"value": hashlib.sha256(data).hexdigest()}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
