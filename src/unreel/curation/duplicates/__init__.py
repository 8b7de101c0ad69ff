"""`[duplicates]`: clips that show the same are kept once, or in one split."""
