"""Reading a saved result of any kind: the file says what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from absentia.audit import Audit, CrossAudit
from absentia.errors import wrong
from absentia.explanation.record import Explanation
from absentia.learning import LearnedBaseline
from absentia.saving import read_tensors

Result: TypeAlias = Explanation | Audit | CrossAudit | LearnedBaseline
_KINDS: dict[str, Any] = {
    "explanation": Explanation,
    "audit": Audit,
    "cross audit": CrossAudit,
    "baseline": LearnedBaseline,
}
# What else absentia saves, and who reads it.
_OTHERS = {"imputer": "Use Imputer.load(path).", "surrogate": "Use Surrogate.load(path)."}


def load(path: str | Path) -> Result:
    """Read a saved explanation, audit, cross audit or learned baseline, whichever the file holds.

    >>> import tempfile, torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explanation.save(f"{folder}/two.safetensors")
    ...     ab.load(f"{folder}/two.safetensors").shapley.values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    _, header = read_tensors(Path(path))
    # The first learned baselines did not say what they were.
    kind = header.get("kind", "baseline" if "share" in header else "file of another kind")
    if kind not in _KINDS:
        must = "hold a saved explanation, audit, cross audit or learned baseline"
        raise wrong("path", must, f"{path}, a saved {kind}", _OTHERS.get(kind, ""))
    return _KINDS[kind].load(path)
