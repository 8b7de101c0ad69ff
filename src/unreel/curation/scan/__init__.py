"""The one pass over each file that duplicates, split, crop and screen go by."""
