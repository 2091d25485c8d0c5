"""Pictures, PLY files and videos of fields, by the names of `ti.tools`."""

from __future__ import annotations as _annotations

from costate.absent import message
from costate.tools.image import imread, imresize, imshow, imwrite
from costate.tools.ply import PLYWriter
from costate.tools.video import VideoManager

__all__ = ["PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite"]


def __getattr__(name: str) -> None:
    raise AttributeError(message("costate.tools", name))
