"""What clips are about: told by a model, grouped by meaning, sampled evenly, told easy from hard."""
