"""A season of the arena as static pages: two boards, the matrix between them, and a page for each entrant."""
