"""`[screen]`: what stays, by measures and by people."""
