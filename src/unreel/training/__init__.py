"""A reviewer learned from people's judgements."""
