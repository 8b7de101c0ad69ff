"""Estimate of a training before it starts: tokens, memory, hours and cost, with the assumptions."""
