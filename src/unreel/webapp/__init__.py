"""Parts that the web applications of unreel share: the reward service and the desk.

Where to look:
    `refusals.py`: refusals with HTTP status and reason.
    `request_limits.py`: checks of a request before its body is read, and limits of the body.
    `tokens.py`: bearer tokens, their scopes and limits.
    `server.py`: one application in this process, until a stop signal.
"""
