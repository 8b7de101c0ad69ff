"""Access to Label Studio over its HTTP API, and the local Label Studio server.

Where to look:
    `client.py`: HTTP requests.
    `server.py`: the local server process, and accounts of annotators.
    `settings.py`: settings, secrets and address of the server.
    `projects.py`: the project of one annotator and batch, and its URL.
    `project_state.py`: detection and repair of changed projects.
    `push.py`: upload of tasks to Label Studio.
    `pull.py`: import of answers into the ledger.
"""
