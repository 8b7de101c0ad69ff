"""unreel tells whether a video looks AI-generated, where, when and why."""
