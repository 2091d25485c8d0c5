"""Pictures: element (i, j) of a field is column i from the left, row j from below."""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any

import numpy as np


def _array(picture: Any) -> np.ndarray[Any, Any]:
    return picture if isinstance(picture, np.ndarray) else picture.to_numpy()


def _bytes(picture: Any) -> np.ndarray[Any, Any]:
    """Rows from above, of 1, 3 or 4 channels of u8; floats are clipped to 0 ... 1."""
    picture = _array(picture)
    if picture.ndim == 2:
        picture = picture[..., None]
    if picture.ndim != 3 or picture.shape[2] not in (1, 3, 4):
        raise ValueError(f"a picture has shape (width, height), with 1, 3 or 4 channels; not {picture.shape}")
    if picture.dtype.kind == "f":
        picture = np.clip(picture, 0, 1) * 255
    elif picture.dtype.kind == "u":
        picture = picture >> (8 * (picture.dtype.itemsize - 1))
    else:
        raise ValueError(f"a picture has elements of a float or an unsigned type, not {picture.dtype}")
    return np.ascontiguousarray(picture.astype(np.uint8).swapaxes(0, 1)[::-1])


def _png(rows: np.ndarray[Any, Any]) -> bytes:
    height, width, channels = rows.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows.reshape(height, -1)], axis=1)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b""))


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"{what} needs Pillow: pip install pillow") from None
    return Image


def imwrite(img: Any, filename: str | os.PathLike[str]) -> None:
    """Writes a field or array of shape (width, height), with 1, 3 or 4 channels; PNG, others by Pillow."""
    rows, name = _bytes(img), os.fspath(filename)
    if name.lower().endswith(".png"):
        with open(name, "wb") as file:
            file.write(_png(rows))
        return
    rows = rows[..., 0] if rows.shape[2] == 1 else rows
    _pillow(f"a picture that is not PNG (`{name}`)").fromarray(rows).save(name)


def imread(filename: str | os.PathLike[str], channels: int = 0) -> np.ndarray[Any, Any]:
    """The picture in a file: u8 of shape (width, height, channels)."""
    picture = _pillow("imread").open(filename)
    mode = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}[channels] or (
        picture.mode if picture.mode in ("L", "RGB", "RGBA") else "RGB")
    rows = np.asarray(picture.convert(mode))
    rows = rows[..., None] if rows.ndim == 2 else rows
    return np.ascontiguousarray(rows[::-1].swapaxes(0, 1))


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray[Any, Any]:
    """The picture with w columns and h (or w) rows, each of which is the next of the old ones."""
    picture, h = _array(img), w if h is None else h
    columns = np.arange(w) * picture.shape[0] // w
    rows = np.arange(h) * picture.shape[1] // h
    resized: np.ndarray[Any, Any] = picture[columns[:, None], rows[None, :]]
    return resized


def imshow(img: Any, title: str = "imshow") -> None:
    """Shows a picture in a window of matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("imshow needs matplotlib: pip install matplotlib; or use `imwrite`") from None
    rows = _bytes(img)
    pyplot.figure(title)
    pyplot.imshow(rows[..., 0] if rows.shape[2] == 1 else rows, cmap="gray")
    pyplot.axis("off")
    pyplot.show()
