"""Reviewers behind one contract, and clients for model servers. May import `protocols`, `media`, `stats`, `core`."""
