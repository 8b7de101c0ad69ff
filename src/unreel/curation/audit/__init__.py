"""`[audit]`: can real and generated be told apart without looking? What leaks, how much, which clips."""
