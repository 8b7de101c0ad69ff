"""Frames and sound of clips at exact timestamps. Imports `core`; its one heavy package is PyAV.

Where to look:
    `reader.py`: facts, frames and sound of a clip.
    `sandbox/`: the confined process that opens untrusted files.
    `sampling.py`: the choice of frames.
    `timeline.py`: the time of every frame.
    `fingerprint.py`: fingerprints that survive re-encoding.
    `near_duplicates.py`: clips with the same content.
    `render.py`: re-encoding into one format, cutting and cropping.
    `overlay.py`: drawing on frames.
    `annotated_copy.py`: a copy of a clip with drawn annotations.
    `perturb.py`: small changes for stability tests.
"""
