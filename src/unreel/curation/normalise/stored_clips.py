"""Clips that a curation writes, stored under the hash of their bytes."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from unreel.core.clip import Clip, ClipId
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.names import read_clip_id
from unreel.curation.piece import stored_name
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClip:
    """A file written by a step, as recorded in its table."""

    made: ClipId
    name: str
    facts: ClipFacts

    def below(self, media: StorageLocation) -> Clip:
        """Return the stored file in the media directory as a clip."""
        clip = read_clip_id(self.made, media.uri)
        location = (media / stored_name(clip, ".mp4")).uri
        return Clip(id=clip, location=location, facts=self.facts)


def store_clip(data: bytes, media: StorageLocation, *, reader: MediaReader) -> StoredClip | Failure:
    """Keep an mp4 file's bytes under their hash."""
    with NamedTemporaryFile(prefix="unreel-", suffix=".mp4") as copy:
        path = Path(copy.name)
        copy.write(data)
        copy.flush()
        facts = reader.probe(path)
        if isinstance(facts, Failure):
            return facts
        clip = clip_id(path)
    name = stored_name(clip, ".mp4")
    media.put(name, data)
    return StoredClip(made=clip, name=name, facts=facts)
