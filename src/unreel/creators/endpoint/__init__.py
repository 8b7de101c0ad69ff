"""Creator for text- and image-to-video services: submit, poll, download.

Where to look:
    `creator.py`: the creator.
    `jobs.py`: submission and polling of jobs without double payment.
    `api.py`: presets of services.
    `client.py`: HTTP requests.
    `call.py`: retries within a deadline.
    `spend_limit.py`: the spend limit.
"""
