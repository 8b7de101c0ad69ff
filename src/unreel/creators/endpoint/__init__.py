"""Creator for text- and image-to-video services: submit, poll, download.

Where to look:
    `creator.py`: the creator.
    `jobs.py`: submission and polling of jobs without double payment.
    `service.py`: presets of services, and the spend limit.
    `client.py`: HTTP requests, and retries within a deadline.
"""
