"""Access to Label Studio over its HTTP API, and the local Label Studio server.

Where to look:
    `client.py`: settings, secrets and process of the server, HTTP requests, and accounts of annotators.
    `projects.py`: the project of one annotator and batch, its URL, and detection and repair of changes.
    `pull.py`: import of answers into the ledger.
"""
