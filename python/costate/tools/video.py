"""Pictures in a row as a video."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

from costate.tools.image import imwrite


class VideoManager:
    """`write_frame(picture)` for each picture, then `make_video()`, which needs ffmpeg."""

    def __init__(self, output_dir: str, width: int | None = None, height: int | None = None, post_processor: Any = None,
                 framerate: float = 24, automatic_build: bool = True) -> None:
        self.directory = os.path.join(output_dir, "frames")
        self.output, self.framerate = output_dir, framerate
        self.post_processor, self.automatic_build = post_processor, automatic_build
        self.frame_counter = 0
        os.makedirs(self.directory, exist_ok=True)

    def get_frame_directory(self) -> str:
        return self.directory

    def get_output_filename(self, suffix: str) -> str:
        return os.path.join(self.output, "video" + suffix)

    def write_frame(self, img: Any) -> None:
        """Adds a picture; see `imwrite`."""
        if self.post_processor:
            img = self.post_processor.process(img)
        imwrite(img, os.path.join(self.directory, f"{self.frame_counter:06d}.png"))
        self.frame_counter += 1

    def write_frames(self, images: Iterable[Any]) -> None:
        for one in images:
            self.write_frame(one)

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """Makes video.mp4 and video.gif of the pictures."""
        program = shutil.which("ffmpeg")
        if program is None:
            raise RuntimeError(f"make_video needs ffmpeg; the pictures are in {self.directory}")
        source = ["-framerate", str(self.framerate), "-i", os.path.join(self.directory, "%06d.png")]
        for suffix, wanted in ((".mp4", mp4), (".gif", gif)):
            if wanted:
                extra = ["-pix_fmt", "yuv420p"] if suffix == ".mp4" else []
                subprocess.run([program, "-y", "-loglevel", "error", *source, *extra,
                                self.get_output_filename(suffix)], check=True)
