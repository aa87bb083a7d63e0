"""What info tells about saved files."""

import json

import torch

import absentia as ab
from command_words import succeed
from own_files import make_network, make_rows

ROWS, CLASSES = (torch.from_numpy(array) for array in make_rows())
PLAYERS = ab.Players.features(["a", "b", "c"])


def learn(**settings):
    quick = {"steps": 1, "rows_per_comparison": 256, "samples": 4} | {
        name: settings.pop(name) for name in ("orders", "samples") if name in settings
    }
    settings = {"loss": "marginal", "players": PLAYERS, "y": CLASSES} | settings
    return ab.learn_baseline(make_network(), ROWS, options=ab.LearningOptions(**quick), **settings)


def test_info_describes_every_saved_file(run):
    learn().save("base.absentia")
    x = ROWS.float()
    ab.train_imputer(x, epochs=1, progress=False).save("imputer.absentia")
    ab.train_surrogate(make_network(), x, epochs=1, progress=False).save("surrogate.absentia")
    ab.explain(make_network(), ROWS[:1], absence=ab.Baseline(0.0)).save("one.absentia")
    firsts = {
        "base.absentia": "LearnedBaseline",
        "imputer.absentia": "Imputer",
        "surrogate.absentia": "Surrogate",
        "one.absentia": "Explanation",
    }
    for name, first in firsts.items():
        assert succeed(run("info", name)).startswith(first)
    printed = json.loads(succeed(run("info", "one.absentia", "--json")))
    assert printed["header"]["kind"] == "explanation"
    assert printed["tensors"]["shapley.values"] == [1, 3]
