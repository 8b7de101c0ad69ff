"""What is known of a clip that lies nowhere."""

from fractions import Fraction

from unreel.core.clip import ClipFacts, VideoFacts

FACTS = ClipFacts(
    container="mov",
    size_bytes=1000,
    video=VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=640,
        height=360,
        rotation_deg=0,
        n_frames=50,
        average_rate=Fraction(25),
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=Fraction(2),
    ),
)
