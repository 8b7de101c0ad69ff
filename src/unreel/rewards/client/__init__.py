"""Client of the reward service, for trainers: one file without dependencies."""
