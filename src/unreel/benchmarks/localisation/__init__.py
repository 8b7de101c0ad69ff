"""Readers of data sets and predictions of generated segments, in the formats of other projects.

Where to look:
    `json_stream.py`: large JSON files, one element at a time.
    `segment_files.py`: LAV-DF, AV-Deepfake1M, ActivityForensics and ViF-CoT.
    `masks.py`: masks of FakeParts and BrokenVideos as boxes.
    `predictions.py`: predictions in these formats as answers, and detection of a format.
"""
