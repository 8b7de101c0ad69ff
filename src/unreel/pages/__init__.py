"""What shows a clip on a page: the frame of the page, the footage, and the player with its description."""
