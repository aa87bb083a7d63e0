"""A user's folder: a module with small models, and data in every kind of file."""

import json

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

MODULE = """
import time

import numpy as np
import torch
from torch import nn

print("a module may print when it is imported")


def build(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def build_conv():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 16, 2))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, rows):
        return self.out(self.words(rows).mean(1))


def fail():
    raise OSError("the weights are elsewhere")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, rows):
        return self.layer(rows)


class Restored(Net):
    def __init__(self):
        super().__init__()
        self.layer.weight.data.fill_(0.5)
        self.layer.bias.data.zero_()


def with_new_head():
    return nn.Sequential(Restored(), nn.Linear(2, 2))


def of_numpy(rows):
    return np.exp(rows[:, 0]) * rows[:, 1] - rows[:, 2]


def of_torch(rows):
    return rows.prod(1)


def in_place(rows):
    rows[:, 0] = 2.0
    return rows[:, 0] * torch.relu(rows[:, 1])


def probabilities(rows):
    return torch.softmax(rows, 1)[:, :2] / torch.softmax(rows, 1)[:, :2].sum(1, keepdim=True)


def refuse(rows):
    raise RuntimeError("no rows like these")


network, number = build(1), 3
calls = []


def slow(rows):
    time.sleep(0.02)
    return rows.prod(1)


def later(rows):
    calls.append(len(rows))
    if len(calls) > 6:
        raise ZeroDivisionError("now")
    return rows.prod(1)


def interrupt(rows):
    calls.append(len(rows))
    if len(calls) > 20:
        raise KeyboardInterrupt
    return rows.prod(1)
"""


def make_network(seed=1):
    """The network whose weights are in the files; `mymodule:build` makes it with others."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def make_rows(count=40):
    rows = np.random.default_rng(0).random((count, 3)).round(3)
    return rows, (rows.sum(1) > 1.5).astype(int)


def write_files(folder):
    """Write the module, weights, tables and arrays."""
    (folder / "mymodule.py").write_text(MODULE)
    network = make_network()
    save_file(network.state_dict(), folder / "w.safetensors")
    torch.save({"state_dict": {f"module.{k}": v for k, v in network.state_dict().items()}}, folder / "w.pt")
    rows, classes = make_rows()
    np.savez(folder / "data.npz", x=rows, y=classes)
    lines = ["a,b,c,kind", *(",".join(map(str, [*row, kind])) for row, kind in zip(rows, classes, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    (folder / "groups.json").write_text(json.dumps({"both": ["a", "c"], "other": ["b"]}))
    return folder
