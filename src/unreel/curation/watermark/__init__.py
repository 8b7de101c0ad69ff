"""`[watermark]`: overlaid text and logos are found, told of and painted over."""
