"""`[inject]`: traces injected into real clips, with exact ground truth of box, time and category."""
