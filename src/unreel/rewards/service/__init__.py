"""HTTP service of rewards: FastAPI and uvicorn, or Ray Serve."""
