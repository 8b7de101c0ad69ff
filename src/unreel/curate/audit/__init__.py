"""Can real and generated be told apart without looking? What leaks, how much, and which clips."""
