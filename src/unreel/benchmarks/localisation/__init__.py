"""Data sets and prediction files about generated segments, in the formats of others.

Where to look:
    `formats.py`: detection of a format.
    `json_items.py`: large JSON files, one element at a time.
    `lav_df.py`: LAV-DF and AV-Deepfake1M.
    `activity_forensics.py`: ActivityForensics.
    `vif_cot.py`: ViF-CoT.
    `masks.py`: masks of FakeParts and BrokenVideos as boxes.
    `predictions.py`: predictions in these formats as answers.
"""
