"""Images of a page."""

import base64
import io

import pytest
import torch
from PIL import Image

from absentia.report.pixels import ImageScale, png


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_has_the_pixels_it_was_made_of(channels):
    pixels = torch.randint(256, (5, 7, channels), dtype=torch.uint8)
    kind, content = png(pixels).split(",")
    assert kind == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(content)))
    assert image.mode == {1: "L", 3: "RGB"}[channels]
    assert list(image.tobytes()) == pixels.flatten().tolist()


def test_pictures_share_one_scale_and_shrink_to_fit():
    images = torch.stack([torch.full((1, 300, 200), -1.0), torch.full((1, 300, 200), 3.0)])
    scale = ImageScale.of(images, count=2)
    assert (scale.low, scale.high, scale.height, scale.width) == (-1, 3, 128, 85)
    assert ImageScale.of(images, count=10_000).height == 16
    decoded = [Image.open(io.BytesIO(base64.b64decode(scale.address(image).split(",")[1]))) for image in images]
    assert [set(image.tobytes()) for image in decoded] == [{0}, {255}]
    assert ImageScale(0, 1, 2, 2).labels(torch.arange(16).view(4, 4)) == [5, 7, 13, 15]
