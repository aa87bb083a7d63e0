"""Made-up files in the forms that data sets are published in, and the records that vouch for them."""

import gzip
import hashlib
import struct
from dataclasses import replace


def publish(folder, source, *contents):
    """Write files of a data set's form, and make the record that vouches for them."""
    files = []
    for file, content in zip(source.files, contents, strict=True):
        content = content.encode() if isinstance(content, str) else content
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(replace(file, checksum="sha256:" + hashlib.sha256(content).hexdigest()))
    return replace(source, files=tuple(files))


def idx(array):
    """Write an array of bytes in the packed idx format."""
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.tobytes())


def cifar_batch(images, labels):
    """Write images in CIFAR's binary form: label, red, green, blue."""
    return b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def tsv(sentences, labels):
    """Write sentences and labels as SST-2 does, with a space at each sentence's end."""
    rows = [f"{sentence} \t{label}" for sentence, label in zip(sentences, labels, strict=True)]
    return "\n".join(["sentence\tlabel", *rows]) + "\n"
