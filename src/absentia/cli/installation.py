"""The installed versions, devices and extras."""

import importlib.metadata
import importlib.util
import platform
from typing import Any

import torch

import absentia as ab
from absentia.cli.model_files import devices

# The modules of each extra of pip install 'absentia[…]'.
EXTRAS: dict[str, tuple[str, ...]] = {
    "plot": ("matplotlib",),
    "tables": ("pandas",),
    "parquet": ("pandas", "pyarrow"),
    "images": ("PIL",),
    "onnx": ("onnxruntime",),
    "skops": ("skops",),
    "sklearn": ("sklearn", "pandas"),
    "shap": ("shap",),
    "captum": ("captum",),
    "shapiq": ("shapiq",),
    "transformers": ("transformers",),
    "demo": ("matplotlib", "sklearn"),
    "scale": ("joblib", "cloudpickle"),
    "dask": ("distributed",),
}


def describe_installation() -> tuple[dict[str, Any], str]:
    """Return the installed versions, devices and extras, for JSON and as text."""
    is_installed = {
        extra: all(importlib.util.find_spec(module) for module in modules) for extra, modules in EXTRAS.items()
    }
    facts = {
        "absentia": ab.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": importlib.metadata.version("numpy"),
        "devices": [f"{device} ({name})" if name else device for device, name in devices().items()],
        "threads": torch.get_num_threads(),
        "extras": [extra for extra, installed in is_installed.items() if installed],
    }
    missing = {
        extra: f"pip install 'absentia[{extra}]'" for extra, installed in is_installed.items() if not installed
    }
    lines = []
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else value
        lines.append(f"{name:<10}{text}")
    for extra, command in missing.items():
        lines.append(f"{'missing':<10}{extra}: {command}")
    return facts | {"missing": missing}, "\n".join(lines)
