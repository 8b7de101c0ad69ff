"""What several people together say of a clip, and who said otherwise."""
