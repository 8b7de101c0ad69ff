"""`[watermark]`: detection, report and removal of overlaid text and logos."""
