"""Short clips for runs that are killed: small, real, and each distinct in its bytes."""

from pathlib import Path

from synthesise import ClipRecipe, synthesise

PICTURES = 16
CREATORS = ("", "", "Sora", "Veo")


def make_clips(folder: Path, n_clips: int) -> Path:
    """`n_clips` clips in `folder` and the manifest that lists them: half real, half of two creators.

    Pictures repeat after 16 clips; a box that players skip makes every file a clip of its own.
    """
    pictures = [
        synthesise(ClipRecipe(width=64, height=64, n_frames=8, seed=seed))
        for seed in range(min(n_clips, PICTURES))
    ]
    lines = ["file,label,generator,group"]
    for number in range(n_clips):
        name, creator = f"c{number:05d}.mp4", CREATORS[number % len(CREATORS)]
        (folder / name).write_bytes(pictures[number % PICTURES] + free_box(number))
        lines.append(f"{name},{'generated' if creator else 'real'},{creator},g{number // 4}")
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return manifest


def free_box(number: int) -> bytes:
    """A box of mp4 that holds `number` and means nothing to a player."""
    return (16).to_bytes(4, "big") + b"free" + number.to_bytes(8, "big")
