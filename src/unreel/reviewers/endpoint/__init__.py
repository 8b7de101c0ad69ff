"""Models behind an OpenAI-compatible server.

Where to look:
    `client.py`: one question: requests, retries, deadline.
    `reviewer.py`: the reviewer.
    `budget.py`: limits of requests and cost.
    `spending_log.py`: reservations that survive kill -9.
    `circuit_breaker.py`: pauses while a server fails.
    `concurrency.py`: requests in flight.
    `families.py`: model families: inputs, boxes and times.
    `keys.py`: the key of each request.
    `replies.py`: parsing of responses.
    `tokens.py`: estimates of tokens.
"""
