"""Points and meshes as PLY files."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
          "float": "f4", "double": "f8"}
_CORNERS = {"tri": 3, "quad": 4}


class PLYWriter:
    """Channels of vertices and faces: `add_vertex_pos(x, y, z)`, ..., then `export("a.ply")`.

    `face_type` is "tri" or "quad".
    """

    def __init__(self, num_vertices: int, num_faces: int = 0, face_type: str = "tri",
                 comment: str = "made by costate") -> None:
        if face_type not in _CORNERS:
            raise ValueError(f"face_type is one of {list(_CORNERS)}, not {face_type!r}")
        self.num_vertices, self.num_faces, self.comment = num_vertices, num_faces, comment
        self.corners = _CORNERS[face_type]
        self._vertices: list[Any] = []
        self._faces: list[Any] = []  # (name, type, array)
        self._indices: Any = None

    @staticmethod
    def _channel(key: str, data_type: str, data: Any, count: int) -> list[Any]:
        if data_type not in _TYPES:
            warnings.warn(f"channel `{key}` is left out: `{data_type}` is no type of a PLY file; "
                          f"these are: {list(_TYPES)}", stacklevel=3)
            return []
        data = np.asarray(data).reshape(-1)
        if data.size != count:
            raise ValueError(f"channel `{key}` has {data.size} values for {count} elements")
        return [(key, data_type, data.astype("<" + _TYPES[data_type]))]

    def add_vertex_channel(self, key: str, data_type: str, data: ArrayLike) -> None:
        """One number for each vertex, of a type of PLY files: "float", "int", "uchar", ..."""
        self._vertices.extend(self._channel(key, data_type, data, self.num_vertices))

    def add_face_channel(self, key: str, data_type: str, data: ArrayLike) -> None:
        """One number for each face."""
        self._faces.extend(self._channel(key, data_type, data, self.num_faces))

    def _add(self, names: tuple[Any, ...], arrays: tuple[Any, ...]) -> None:
        for name, data in zip(names, arrays):
            self.add_vertex_channel(name, "float", data)

    def add_vertex_pos(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> None:
        self._add(("x", "y", "z"), (x, y, z))

    def add_vertex_normal(self, nx: ArrayLike, ny: ArrayLike, nz: ArrayLike) -> None:
        self._add(("nx", "ny", "nz"), (nx, ny, nz))

    def add_vertex_vel(self, vx: ArrayLike, vy: ArrayLike, vz: ArrayLike) -> None:
        self._add(("vx", "vy", "vz"), (vx, vy, vz))

    def add_vertex_color(self, r: ArrayLike, g: ArrayLike, b: ArrayLike) -> None:
        self._add(("red", "green", "blue"), (r, g, b))

    def add_vertex_alpha(self, alpha: ArrayLike) -> None:
        self._add(("Alpha",), (alpha,))

    def add_vertex_rgba(self, r: ArrayLike, g: ArrayLike, b: ArrayLike, a: ArrayLike) -> None:
        self._add(("red", "green", "blue", "Alpha"), (r, g, b, a))

    def add_vertex_color_uchar(self, r: ArrayLike, g: ArrayLike, b: ArrayLike) -> None:
        for name, data in zip(("red", "green", "blue"), (r, g, b)):
            self.add_vertex_channel(name, "uchar", data)

    def add_vertex_id(self) -> None:
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_vertex_piece(self, piece: ArrayLike) -> None:
        self.add_vertex_channel("piece", "int", piece)

    def add_faces(self, indices: ArrayLike) -> None:
        """The vertices of the faces, one face after the other."""
        indices = np.asarray(indices).reshape(-1)
        if indices.size != self.corners * self.num_faces:
            raise ValueError(f"{self.num_faces} faces of {self.corners} vertices need "
                             f"{self.corners * self.num_faces} indices, not {indices.size}")
        self._indices = indices.reshape(self.num_faces, self.corners).astype("<i4")

    def add_face_id(self) -> None:
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: ArrayLike) -> None:
        self.add_face_channel("piece", "int", piece)

    def _header(self, form: str) -> bytes:
        lines = ["ply", f"format {form} 1.0", f"comment {self.comment}",
                 f"element vertex {self.num_vertices}"]
        lines += [f"property {kind} {name}" for name, kind, _ in self._vertices]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            lines += [f"property {kind} {name}" for name, kind, _ in self._faces]
        return "\n".join(lines + ["end_header", ""]).encode()

    def _tables(self) -> list[Any]:
        """The vertices and the faces, as records."""
        if not self._vertices:
            raise ValueError("no channel of vertices was added; `add_vertex_pos` adds positions")
        tables = [self._table(self.num_vertices, self._vertices)]
        if self.num_faces:
            if self._indices is None:
                raise ValueError("the faces have no vertices; `add_faces` adds them")
            lead = [("count", "uchar", np.full(self.num_faces, self.corners, "u1"))]
            lead += [(f"corner {k}", "int", self._indices[:, k]) for k in range(self.corners)]
            tables.append(self._table(self.num_faces, lead + self._faces))
        return tables

    @staticmethod
    def _table(count: int, channels: list[Any]) -> np.ndarray[Any, Any]:
        table = np.empty(count, [(name, "<" + _TYPES[kind]) for name, kind, _ in channels])
        for name, _, data in channels:
            table[name] = data
        return table

    def export(self, path: str) -> None:
        """Writes a binary file."""
        tables = self._tables()
        with open(path, "wb") as file:
            file.write(self._header("binary_little_endian"))
            for table in tables:
                file.write(table.tobytes())

    def export_ascii(self, path: str) -> None:
        """Writes a text file."""
        tables = self._tables()
        with open(path, "wb") as file:
            file.write(self._header("ascii"))
            for table in tables:
                for row in table:
                    file.write((" ".join(str(v) for v in row.tolist()) + "\n").encode())

    @staticmethod
    def _numbered(path: str, number: int) -> str:
        base, ending = os.path.splitext(os.fspath(path))
        return f"{base if ending == '.ply' else os.fspath(path)}_{number:06d}.ply"

    def export_frame(self, series_num: int, path: str) -> None:
        """Writes PATH_000001.ply, with the number of the frame."""
        self.export(self._numbered(path, series_num))

    def export_frame_ascii(self, series_num: int, path: str) -> None:
        """Writes a text file PATH_000001.ply."""
        self.export_ascii(self._numbered(path, series_num))
