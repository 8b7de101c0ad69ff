"""Training examples: questions with their target answers."""
