"""Who judges: reviewers behind one contract, and how to ask a server well. May import `protocols`, `media`, `stats`, `core`."""
