"""One safe file format for all results.

A saved result is one safetensors file with a JSON header, without pickle. The header holds the kind, the format and
the plain fields; the tensors are stored beside it under the path of their field, such as ``shapley.values``. A
checksum of all of it reveals damaged files.
"""

from absentia.storage.saved_results import Saved, load, read_header
from absentia.storage.tensor_files import read_tensors, write_tensors
from absentia.storage.whole_files import check_folder, keep_figure, write_whole

__all__ = [
    "Saved",
    "check_folder",
    "keep_figure",
    "load",
    "read_header",
    "read_tensors",
    "write_tensors",
    "write_whole",
]
