"""Pictures, meshes, videos, sorting: `ti.tools` and `ti.algorithms`."""

import numpy as np
import pytest

import costate as ti


def test_pictures_are_written_with_the_first_row_below(tmp_path):
    image = pytest.importorskip("PIL.Image")
    x = ti.Vector.field(3, ti.f32, shape=(4, 2))
    x[3, 0] = (1, 0.5, 0)
    ti.tools.imwrite(x, str(tmp_path / "a.png"))
    rows = np.asarray(image.open(tmp_path / "a.png"))
    assert rows.shape == (2, 4, 3) and rows.sum() == 255 + 127
    assert rows[1, 3].tolist() == [255, 127, 0]
    assert (ti.tools.imread(str(tmp_path / "a.png"))[3, 0] == [255, 127, 0]).all()
    gray = np.arange(6, dtype=np.uint8).reshape(2, 3)
    ti.tools.imwrite(gray, tmp_path / "b.png")
    assert (ti.tools.imread(tmp_path / "b.png")[..., 0] == gray).all()
    assert ti.tools.imresize(gray, 4).tolist() == [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [3, 3, 4, 5]]


def test_meshes_are_written_as_text_and_as_bytes(tmp_path):
    writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
    writer.add_vertex_id()
    writer.add_faces([0, 1, 2])
    writer.export_frame_ascii(7, str(tmp_path / "mesh.ply"))
    text = (tmp_path / "mesh_000007.ply").read_text().split("\n")
    assert text[text.index("end_header") + 1:] == ["0.0 0.0 0.0 0", "1.0 0.0 0.0 1", "0.0 1.0 0.0 2",
                                                    "3 0 1 2", ""]
    writer.export(tmp_path / "mesh.ply")
    data = (tmp_path / "mesh.ply").read_bytes().split(b"end_header\n")[1]
    assert len(data) == 3 * 16 + 13 and data[-13] == 3
    with pytest.warns(UserWarning, match="`c` is left out: `half`"):
        writer.add_vertex_channel("c", "half", [1, 2, 3])
    with pytest.raises(ValueError, match="2 values for 3 elements"):
        writer.add_vertex_channel("p", "float", [1, 2])


def test_frames_of_a_video_are_pictures(tmp_path):
    video = ti.tools.VideoManager(output_dir=str(tmp_path), automatic_build=False)
    video.write_frames([np.zeros((4, 4)), np.ones((4, 4))])
    assert sorted(p.name for p in (tmp_path / "frames").iterdir()) == ["000000.png", "000001.png"]


def test_sorting_and_sums_of_fields():
    keys, values = ti.field(ti.i32, shape=4), ti.field(ti.f32, shape=4)
    keys.from_numpy(np.array([3, 1, 2, 1], np.int32))
    values.from_numpy(np.arange(4, dtype=np.float32))
    ti.algorithms.parallel_sort(keys, values)
    assert keys.to_numpy().tolist() == [1, 1, 2, 3] and values.to_numpy().tolist() == [1, 3, 2, 0]
    ti.algorithms.PrefixSumExecutor(3).run(keys)
    assert keys.to_numpy().tolist() == [1, 2, 4, 3]
