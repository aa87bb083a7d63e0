"""Folders of images as samples and classes."""

import numpy as np
import torch

from command_tables import samples, write_images


def test_a_folder_of_images_has_its_subfolders_as_classes(folder):
    pixels = write_images(folder / "pets")
    found = samples("pets", None)
    assert found.x.shape == (6, 1, 4, 4)
    assert found.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.classes == ("cat", "dog")
    assert "0 is cat, 1 is dog" in found.notes[0]
    np.testing.assert_allclose(found.x[4, 0].numpy(), pixels["dog", 1] / 255, rtol=1e-6)
    assert samples("pets", None, classes=["dog", "cat"]).y.tolist() == [1, 1, 1, 0, 0, 0]
    assert samples("pets", None, rows=2).y.tolist() == [0, 1]  # one of each
    assert samples("pets/dog", None).y is None
    assert samples("pets", None, size=(2, 6), channels=3).x.shape == (6, 3, 2, 6)
    write_images(folder / "numbers", names=("10", "9"))
    assert samples("numbers", None).y.tolist() == [10, 10, 10, 9, 9, 9]
    write_images(folder / "colours", names=("one",), shape=(4, 5, 3))
    assert samples("colours", None).x.shape == (3, 3, 4, 5)


def test_images_of_sixteen_bits_keep_them(folder):
    from PIL import Image

    (folder / "deep").mkdir()
    Image.fromarray(np.array([[0, 65535], [256, 32768]], dtype=np.uint16)).save(folder / "deep" / "a.png")
    expected = torch.tensor([[0.0, 1.0], [256 / 65535, 32768 / 65535]])
    torch.testing.assert_close(samples("deep", None).x[0, 0], expected)
