"""The instruments: their prompts, parsers and scorers, pure and versioned. May import `stats` and `core`."""
