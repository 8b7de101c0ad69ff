"""`[splice]`: long videos of real segments with generated ones among them, and their exact ground truth."""
