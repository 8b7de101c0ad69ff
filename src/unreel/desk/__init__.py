"""Web application where people turn clips into cases with evidence, verdicts and custody bundles.

Where to look:
    `settings.py`: the file `desk.toml`.
    `case_store.py`: cases on disk, with an append-only log.
    `reviewer_sets.py`: models and questions of a set, and the cost of a clip.
    `review_case.py`: the review of one case, with the functions of `unreel review`; its answers are in a
        run table, so that no answered question is sent twice.
    `keyframes.py`: shot boundaries and distinct frames as pictures.
    `worker.py`: queue of cases, progress and remaining time.
    `access.py`: sessions, the user header of a proxy, checks of requests.
    `custody_bundle.py`: custody bundles, written and verified.
    `signature.py`: signatures of bundles by ssh-keygen.
    `pages.py`: the pages as HTML.
    `service.py`: the open components of a desk, and dependencies of its routes.
    `case_routes.py`: routes of a case: forms and files.
    `allowed_folders.py`: clips in allowed folders of this machine.
    `app.py`: the FastAPI application: sessions, lists, new clips and progress.
"""
