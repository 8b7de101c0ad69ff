"""`[crop]`: filled borders are told from the picture and go."""
