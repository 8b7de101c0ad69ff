"""Domain types and shared rules, as frozen and exact values. Imports the standard library only.

Where to look:
    `clip.py`: clips, their origin and their creators.
    `question.py`: questions and conditions.
    `verdict.py`: parsed answers (`Unparsed` for missing parts).
    `failure.py`: failures as values with a reason.
    `estimate.py`: numbers with an interval and n (`Unmeasured` without).
    `errors.py`: all errors that unreel raises, with advice.
    `output_files.py`: the only module that writes files.
    `safe_names.py`: file names and ids from untrusted text.
    `safe_text.py`: text without control characters.
    `settings.py`: environment variables.
    `server_keys.py`: API keys of servers.
    `retry.py`: backoff and retry budget.
    `address_check.py`: addresses that may be connected to.
    `managed_process.py`: child processes that never outlive their parent.
    `registry.py`: objects that users choose by name, loaded on demand.
    `table_formats.py`: tables as CSV, LaTeX, Markdown and HTML.
"""
