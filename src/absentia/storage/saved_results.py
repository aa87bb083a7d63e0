"""Saving results to one file, and loading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from absentia.arguments import checked
from absentia.errors import AbsentiaError, wrong
from absentia.storage.codec import Unpacker, pack
from absentia.storage.tensor_files import read_tensors, write_tensors
from absentia.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self

# Files of older formats keep each class's own layout; `from_old` of the class returns its fields.
_FIRST_COMMON_FORMAT = 3


def read_header(path: str | Path) -> dict[str, Any]:
    """Read the header of a saved result; its ``kind`` is always set."""
    _tensors, header = read_tensors(path)
    # The first learned baselines did not name their kind.
    default_kind = "baseline" if "share" in header else "file of another kind"
    return {"kind": default_kind} | header


@checked
class Saved:
    """A dataclass that is saved to one file."""

    KIND: ClassVar[str]
    FORMAT: ClassVar[int]
    from_old: ClassVar[Any]  # tensors, header of a file of an older format → its fields in the present one

    def __init_subclass__(cls, kind: str, format: int) -> None:
        cls.KIND = kind
        cls.FORMAT = format

    def save(self, path: str | Path, **extra: Any) -> None:
        """Write everything to one safetensors file with a JSON header, which includes ``extra``, without pickle."""
        tensors: dict[str, Tensor] = {}
        fields = pack(self, tensors)
        header = {"kind": self.KIND, "format": self.FORMAT, "version": __version__, "fields": fields}
        write_tensors(path, tensors, header | extra)

    @staticmethod
    def upgraded(_tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Convert the fields of an older common format to the present one; most are unchanged."""
        return fields

    @classmethod
    def load(cls, path: str | Path, **more: Any) -> Self:
        """Read a file written by `save`; pass ``network=`` for a surrogate with a custom network."""
        tensors, header = read_tensors(path)
        kind = header.get("kind", "baseline")
        if kind != cls.KIND:
            raise wrong("path", f"hold a saved {cls.KIND}", f"{path}, a saved {kind}")
        try:
            return cls._from_file(tensors, header, more)
        except AbsentiaError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            got = f"{path}, in which something is missing or damaged"
            raise wrong("path", f"hold a whole {kind}", got) from error

    @classmethod
    def _from_file(cls, tensors: dict[str, Tensor], header: dict[str, Any], more: dict[str, Any]) -> Self:
        """Make the dataclass from the tensors and the header of a file in any format up to the present one."""
        format_number = header.get("format", 0)
        if format_number > cls.FORMAT:
            raise cls._too_new(format_number, header)
        if format_number < _FIRST_COMMON_FORMAT:
            fields = cls.from_old(tensors, header)
        else:
            fields = header["fields"]
        fields = cls.upgraded(tensors, fields)
        result: Self = Unpacker(tensors, more).unpack(cls, fields)
        return result

    @classmethod
    def _too_new(cls, format_number: int, header: dict[str, Any]) -> AbsentiaError:
        """Return the error for a file that a newer absentia wrote."""
        old_version = header.get("record", {}).get("version", "unknown")  # where the first formats had it
        version = header.get("version", old_version)
        must = f"hold a saved {cls.KIND} of format {cls.FORMAT} or older"
        return wrong("path", must, f"format {format_number} by absentia {version}", "Install a newer absentia.")


@checked
def load(path: str | Path) -> Any:
    """Read a saved result of any kind: an explanation, an audit, learned values or a network.

    Parameters
    ----------
    path : str or Path
        A file written by the ``save`` method of a result.

    Examples
    --------
    >>> import tempfile
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explanation.save(f"{folder}/two.safetensors")
    ...     ab.load(f"{folder}/two.safetensors").shapley.values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    kind = str(read_header(path)["kind"])
    classes = {saved.KIND: saved for saved in Saved.__subclasses__()}
    if kind not in classes:
        raise wrong("path", f"hold a saved {', '.join(classes)}", f"{path}, a saved {kind}")
    return classes[kind].load(path)
