"""Files that ask a player to open other files."""

import struct
from pathlib import Path

from crafted_mp4 import external


def playlists(canary: Path, port: int) -> dict[str, bytes]:
    """Name to content: each points at `canary` and at a loopback port."""
    url, file = f"http://127.0.0.1:{port}", str(canary)
    hls = _hls(f"{url}/segment.ts", file, canary.name)
    concat = "".join(
        f"file '{target}'\n" for target in (file, canary.name, f"{url}/concat.mp4", f"file:{file}")
    )
    files = {
        "hls.m3u8": hls,
        "hls.mp4": hls,
        "hls-encrypted.mp4": _hls(
            f"{url}/segment.ts", key=f'#EXT-X-KEY:METHOD=AES-128,URI="{url}/key"\n'
        ),
        "hls-with-map.mp4": _hls(file, key=f'#EXT-X-MAP:URI="{url}/map.mp4"\n'),
        "hls-master.mp4": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        f"{url}/inner.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nfile://{file}\n",
        "hls-of-itself.m3u8": _hls("hls-of-itself.m3u8", "file:hls-of-itself.m3u8"),
        "hls-byte-range.mp4": _hls(file, key="#EXT-X-BYTERANGE:100@0\n"),
        "hls-other-protocols.mp4": _hls(
            f"concat:{file}|{file}",
            f"subfile,,start,0,end,100,,:{file}",
            f"tcp://127.0.0.1:{port}",
            f"crypto+http://127.0.0.1:{port}/x",
            f"data:text/plain,{url}",
            f"rtmp://127.0.0.1:{port}/x",
            "pipe:0",
            "fd:3",
        ),
        "concat.ffconcat": "ffconcat version 1.0\n" + concat,
        "concat.mp4": "ffconcat version 1.0\n" + concat,
        "concat-without-version.mp4": concat,
        "concat-unsafe.mp4": f"ffconcat version 1.0\nfile ../../../../../../..{file}\n",
        "concat-of-itself.mp4": "ffconcat version 1.0\nfile concat-of-itself.mp4\n",
        "dash.mpd": _dash(url),
        "dash.mp4": _dash(url),
        "sdp.sdp": _sdp(port),
        "sdp.mp4": _sdp(port),
        "smil.mp4": f"<smil><body><video src='{url}/smil.mp4'/></body></smil>",
        "asx.mp4": f"<asx version='3.0'><entry><ref href='{url}/asx.mp4'/></entry></asx>",
        "pls.mp4": f"[playlist]\nFile1={url}/pls.mp4\nNumberOfEntries=1\n",
        "xspf.mp4": "<playlist xmlns='http://xspf.org/ns/0/'><trackList><track><location>"
        f"{url}/xspf.mp4</location></track></trackList></playlist>",
        "avisynth.avs": f'DirectShowSource("{file}")\n',
        "lavfi.mp4": f"movie={file}[out0]",
        "metadata.mp4": f";FFMETADATA1\ntitle={url}\n",
        "svg.mp4": f"<svg xmlns='http://www.w3.org/2000/svg'><image href='{url}/svg.png'/></svg>",
        "imf.mp4": f"<CompositionPlaylist><Asset><Path>{file}</Path></Asset></CompositionPlaylist>",
        "webvtt.mp4": f"WEBVTT\n\n00:00.000 --> 00:01.000\n<a href='{url}'>x</a>\n",
        "redirect.mp4": f"[Reference]\nRef1={url}/asf\n",
        "frames-%03d.png": "not a picture",
    }
    return {f"list-{name}": text.encode() for name, text in files.items()}


def external_tracks(canary: Path, port: int) -> dict[str, bytes]:
    """MOV files whose samples are said to be elsewhere."""
    url = f"http://127.0.0.1:{port}/track.mov".encode()
    return {
        "dref-url-http.mov": external(b"url ", url),
        "dref-url-file.mov": external(b"url ", b"file://" + bytes(canary)),
        "dref-alias-file.mov": external(b"alis", _alias(bytes(canary))),
        "dref-alias-http.mov": external(b"alis", _alias(url)),
        "dref-resource.mov": external(b"rsrc", _alias(bytes(canary))),
    }


def _alias(path: bytes) -> bytes:
    """The records of a Macintosh alias that name an absolute path, and their end."""
    padded = path + bytes(len(path) % 2)
    records = struct.pack(">HH", 18, len(path)) + padded + struct.pack(">HH", 2, len(path)) + padded
    return records + struct.pack(">HH", 0xFFFF, 0)


def _hls(*targets: str, key: str = "") -> str:
    items = "".join(f"{key}#EXTINF:1.0,\n{target}\n" for target in targets)
    return f"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n{items}#EXT-X-ENDLIST\n"


def _dash(url: str) -> str:
    return f"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S">
<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">
<BaseURL>{url}/dash.mp4</BaseURL><SegmentList duration="1">
<Initialization sourceURL="{url}/init.mp4"/><SegmentURL media="{url}/dash.m4s"/>
</SegmentList></Representation></AdaptationSet></Period></MPD>"""


def _sdp(port: int) -> str:
    return (
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
        f"m=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n"
        f"a=control:rtsp://127.0.0.1:{port}/x\n"
    )
