"""Models behind an OpenAI-compatible server.

Where to look:
    `client.py`: one question: requests, retries, deadline.
    `reviewer.py`: the reviewer.
    `batches.py`: files of questions that a provider answers later at half the price.
    `budget.py`: limits of requests and cost, with reservations that survive kill -9.
    `load_control.py`: requests in flight, and pauses while a server fails.
    `model_families.py`: model families: inputs, boxes and times.
    `servers.py`: addresses and keys of servers.
    `transport.py`: HTTP requests, and parsing of responses.
    `token_estimate.py`: estimates of tokens.
"""
