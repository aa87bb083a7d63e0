"""Malformed calls and damaged files, drawn by a seed: ``python tests/fuzz/fuzzing.py --seconds 3600``.

Every call ends with a result or with an AbsentiaError, and leaves modes, flags, gradients, random generators and the
number of threads as they were. Arguments that the signature leaves out or does not know are no part of this.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import absentia as ab

matplotlib.use("agg")


def network() -> nn.Module:
    """Return a small network in train mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2))


MODEL = network()
X = torch.rand(6, 3, generator=torch.Generator().manual_seed(0))
TABLE = ab.ValueTable(torch.rand(2, 8, generator=torch.Generator().manual_seed(0)))
PLAYERS = ab.Players.features(3)
TABLE_OF_ONE = ab.ValueTable(TABLE.values[0])
ESTIMATOR = LogisticRegression().fit(X.numpy(), [0, 1, 0, 1, 0, 1])
# A right call of each public function, of whose arguments one or two are replaced.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "explain": (
        ab.explain,
        {
            "model": MODEL,
            "x": X,
            "y": 0,
            "absence": 0.0,
            "players": None,
            "evaluations": None,
            "seconds": None,
            "max_players": 24,
            "seed": 0,
            "batch_size": 4,
            "memory": None,
            "data": X,
            "class_names": None,
            "readout": None,
        },
    ),
    "MaskedModel": (ab.MaskedModel, {"model": MODEL, "x": X, "y": 1, "absence": "mean", "data": X}),
    "Task": (ab.Task, {"model": MODEL, "x": X, "players": None, "readout": ab.Logit(0)}),
    "index": (ab.index, {"game": TABLE, "name": "Shapley"}),
    "index of sets": (ab.index, {"game": TABLE, "name": "k-SII", "order": 2}),
    "interactions": (ab.interactions, {"game": TABLE, "solver": "exact"}),
    "listed terms": (ab.Terms.listed, {"sets": torch.eye(3).bool(), "effects": torch.ones(3), "names": None}),
    "shapley": (ab.shapley, {"game": TABLE, "evaluations": None, "seed": 0}),
    "harsanyi": (ab.harsanyi, {"game": TABLE}),
    "banzhaf": (ab.banzhaf, {"game": TABLE}),
    "order_shapley": (ab.order_shapley, {"game": TABLE, "orders": [0, 1]}),
    "order_marginals": (ab.order_marginals, {"game": TABLE, "orders": [0, 1]}),
    "marginal_benefits": (ab.marginal_benefits, {"game": TABLE, "player": 0}),
    "value_table": (ab.value_table, {"game": TABLE, "max_players": 4}),
    "ValueTable": (ab.ValueTable, {"values": [0.0, 1.0], "names": ["a"], "readout": "r"}),
    "features": (ab.Players.features, {"features": ["a", "b"], "categories": None}),
    "groups": (ab.Players.groups, {"groups": {"a": [0]}, "features": 3}),
    "grid": (ab.Players.grid, {"shape": (1, 4, 4), "cells": (2, 2), "only": None}),
    "segments": (ab.Players.segments, {"labels": torch.tensor([0, 1]), "channels": None}),
    "tokens": (ab.Players.tokens, {"tokens": 3, "embedding": None}),
    "Baseline": (ab.Baseline, {"values": 0.0}),
    "mean": (ab.Baseline.mean, {"data": X}),
    "median": (ab.Baseline.median, {"data": X, "categorical": [0]}),
    "Blur": (ab.Blur, {"sigma": 1.0}),
    "Marginal": (ab.Marginal, {"background": X, "draws": 2, "seed": 0}),
    "Noise": (ab.Noise, {"data": X, "kind": "uniform", "low": None, "high": None, "draws": 2, "seed": 0}),
    "Gaussian": (ab.GaussianConditional, {"data": X, "draws": 2, "sample": True, "shrinkage": 0.5, "seed": 0}),
    "Neighbours": (ab.NearestNeighbours, {"data": X, "neighbours": 2, "standardise": True, "seed": 0}),
    "LogOdds": (ab.LogOdds, {"y": 0, "names": ["a", "b"]}),
    "Output": (ab.Output, {"index": 0}),
    "options": (ab.LearningOptions, {"evidence": 1.0, "steps": 3, "samples": 8, "checkpoint": None}),
    "load": (ab.load, {"path": "nowhere"}),
    "enumerate": (ab.enumerate_coalitions, {"players": 3, "start": 0, "stop": 4}),
    "moebius": (ab.moebius, {"values": torch.rand(8)}),
    "zeta": (ab.zeta, {"effects": torch.rand(8)}),
    "draw_coalitions": (
        ab.draw_coalitions,
        {"players": 3, "sizes": torch.tensor([1, 2]), "generator": torch.Generator().manual_seed(0)},
    ),
    "context_map": (ab.context_map, {"game": TABLE_OF_ONE, "player": 0, "drawn": 4, "grown": 2, "seed": 0}),
    "from_numpy": (ab.from_numpy, {"predict": lambda rows: rows, "probabilities": None}),
    "from_estimator": (ab.interop.from_estimator, {"estimator": ESTIMATOR, "table": None, "probabilities": True}),
    "EncodedTable": (ab.interop.EncodedTable.of, {"frame": pd.DataFrame({"a": ["x", "y"]})}),
    "captum_baselines": (ab.interop.captum_baselines, {"absence": 0.0, "x": X, "players": None}),
    "captum_feature_mask": (ab.interop.captum_feature_mask, {"players": PLAYERS}),
    "from_captum": (ab.interop.from_captum, {"attributions": X, "players": PLAYERS, "by_entry": False}),
}
OPTIONS = ab.LearningOptions(steps=2, rows_per_step=64)
FOUND = ab.explain(MODEL, X, 0, absence=0.0)
EFFECTS = ab.harsanyi(TABLE)
GAME = ab.MaskedModel(MODEL, X, 1, absence=0.0)
IMAGE = ab.explain(
    lambda rows: rows.flatten(1).sum(1),
    torch.rand(2, 1, 4, 4),
    absence=0.0,
    players=ab.Players.grid((1, 4, 4), (2, 2)),
)
SAMPLED = ab.explain(lambda rows: rows.prod(1), torch.rand(2, 8), absence=0.0, evaluations=100)
LEARNED = ab.learn_baseline(MODEL, X, readout=ab.Logit(0), options=OPTIONS)
AUDIT = ab.audit(MODEL, X, 0, {"zero": 0.0}, data=X, draws=1, evaluations=2000)
CROSS = ab.cross_audit(MODEL, X, absences=["zero", "mean"], draws=1, data=X)
IMPUTER = ab.train_imputer(X, draws=2, epochs=1, progress=False)
SURROGATE = ab.train_surrogate(MODEL, X, epochs=1, progress=False)
FRAME = pd.DataFrame({"a": ["x", "y"], "b": [0.5, 1.5]})
ENCODED = ab.interop.EncodedTable.of(FRAME)
MASKER = ab.interop.shap_masker(0.0, PLAYERS, X)
JOINED = ab.JoinedInputs(lambda one, other: one.sum(1) + other.sum(1), [X, X])
EVERYBODY = torch.ones(2, 3, dtype=torch.bool)
NUMBERS = torch.arange(6)
FILL = ab.Baseline(0.0).bind(X)
OUTPUTS = torch.rand(6, 2)
# The same of methods: those of results, players, games and absences.
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ValueTable.call": (TABLE, {"coalitions": EVERYBODY}),
    "Interactions.top": (EFFECTS.top, {"k": 2, "sample": 0}),
    "Interactions.salient": (EFFECTS.salient, {"tau": 0.1}),
    "Interactions.sparsity": (EFFECTS.sparsity, {"error": 0.1}),
    "Interactions.reconstruct": (EFFECTS.reconstruct, {"coalitions": EVERYBODY, "keep": EFFECTS.salient()}),
    "Attribution.ranked": (FOUND.shapley.ranked, {"sample": 0}),
    "Explanation.sample_name": (FOUND.sample_name, {"sample": 0}),
    "Explanation.to_shapiq": (FOUND.to_shapiq, {"sample": 0}),
    "Explanation.save": (FOUND.save, {"path": "explanation"}),
    "Explanation.load": (ab.Explanation.load, {"path": "nowhere"}),
    "Audit.save": (AUDIT.save, {"path": "audit"}),
    "Audit.load": (ab.Audit.load, {"path": "nowhere"}),
    "CrossAudit.save": (CROSS.save, {"path": "cross"}),
    "LearnedBaseline.save": (LEARNED.save, {"path": "learned"}),
    "LearnedBaseline.bind": (LEARNED.bind, {"x": X}),
    "LearnedBaseline.of": (LEARNED.of, {"y": 0}),
    "LearnedBaseline.notes_on": (LEARNED.notes_on, {"readout": LEARNED.record.readout_note}),
    "Players.check_samples": (PLAYERS.check_samples, {"x": X}),
    "Players.presence": (PLAYERS.presence, {"coalitions": EVERYBODY}),
    "Players.only": (PLAYERS.only, {"chosen": [0], "argument": "chosen"}),
    "Players.each_entry": (PLAYERS.each_entry, {"most": 2}),
    "Players.entry_values": (PLAYERS.entry_values, {"inputs": X}),
    "Players.named_values": (PLAYERS.named_values, {"inputs": X}),
    "Players.sums": (PLAYERS.sums, {"inputs": X}),
    "Players.means": (PLAYERS.means, {"inputs": X}),
    "Players.texts": (PLAYERS.texts, {"inputs": X}),
    "Baseline.mode": (ab.Baseline.mode, {"data": X}),
    "Baseline.bind": (ab.Baseline(0.0).bind, {"x": X}),
    "Blur.bind": (ab.Blur(1.0).bind, {"x": torch.rand(2, 1, 4, 4)}),
    "Marginal.bind": (ab.Marginal(X, draws=2).bind, {"x": X}),
    "Noise.bind": (ab.Noise(X, draws=2).bind, {"x": X}),
    "Gaussian.bind": (ab.GaussianConditional(X, draws=2).bind, {"x": X}),
    "Neighbours.bind": (ab.NearestNeighbours(X, neighbours=2).bind, {"x": X}),
    "OwnBaselines.bind": (ab.OwnBaselines(X).bind, {"x": X}),
    "Imputer.bind": (IMPUTER.bind, {"x": X}),
    "Imputer.save": (IMPUTER.save, {"path": "imputer"}),
    "Surrogate.bind": (SURROGATE.bind, {"x": X}),
    "Surrogate.save": (SURROGATE.save, {"path": "surrogate"}),
    "MaskedModel.call": (GAME, {"coalitions": EVERYBODY}),
    "Evaluator.values": (
        GAME.evaluator.values,
        {
            "fill": FILL,
            "coalitions": EVERYBODY,
            "samples": NUMBERS,
            "players": None,
            "gradient": False,
            "recompute": False,
        },
    ),
    "Evaluator.table": (GAME.evaluator.table, {"fill": FILL, "samples": NUMBERS, "players": None, "gradient": False}),
    "LogOdds.call": (ab.LogOdds(0), {"output": OUTPUTS, "sample": NUMBERS}),
    "LogOdds.check": (ab.LogOdds(0).check, {"output": OUTPUTS, "samples": 6}),
    "Logit.call": (ab.Logit(0), {"output": OUTPUTS, "sample": NUMBERS}),
    "Margin.call": (ab.Margin(0), {"output": OUTPUTS, "sample": NUMBERS}),
    "Probability.call": (ab.Probability(0), {"output": OUTPUTS, "sample": NUMBERS}),
    "Output.call": (ab.Output(0), {"output": OUTPUTS, "sample": NUMBERS}),
    "Output.check": (ab.Output(0).check, {"output": OUTPUTS, "samples": 6}),
    "Features.call": (ab.Features("0"), {"output": OUTPUTS, "sample": NUMBERS}),
    "JoinedInputs.pack": (JOINED.pack, {"inputs": [X, X]}),
    "EncodedTable.numbers": (ENCODED.numbers, {"frame": FRAME}),
    "EncodedTable.encode": (ENCODED.encode, {"frame": FRAME}),
    "EncodedTable.decode": (ENCODED.decode, {"rows": ENCODED.encode(FRAME)}),
    "ShapMasker.call": (MASKER, {"mask": np.ones(3, dtype=bool), "x": X[0].numpy()}),
    "ShapMasker.shape": (MASKER.shape, {"x": X[0].numpy()}),
    "JoinedInputs": (ab.JoinedInputs, {"model": lambda one: one.sum(1), "inputs": [X]}),
}
# The same of functions that take long, and are called seldom.
SLOW: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "audit": (
        ab.audit,
        {
            "model": MODEL,
            "x": X,
            "y": 0,
            "absences": {"zero": 0.0},
            "players": None,
            "readout": None,
            "region": None,
            "reference": "noise",
            "draws": 1,
            "data": X,
            "tau": None,
            "max_players": 16,
            "categorical": (),
            "class_names": None,
            "evaluations": 2000,
            "seconds": None,
            "seed": 0,
        },
    ),
    "cross_audit": (ab.cross_audit, {"model": MODEL, "x": X, "absences": ["zero", "mean"], "draws": 1, "data": X}),
    "learn_baseline": (
        ab.learn_baseline,
        {
            "model": MODEL,
            "x": X,
            "y": None,
            "players": None,
            "readout": ab.Logit(0),
            "loss": "faithful",
            "start": "best",
            "bounds": "range",
            "share": "all",
            "categorical": (),
            "class_names": None,
            "seed": 0,
            "seconds": 5.0,
            "options": OPTIONS,
        },
    ),
    "baseline_loss": (
        ab.baseline_loss,
        {
            "model": MODEL,
            "x": X,
            "absence": 0.0,
            "loss": "interactions",
            "readout": ab.Logit(0),
            "options": OPTIONS,
            "seed": 0,
        },
    ),
    "train_imputer": (ab.train_imputer, {"data": X, "players": None, "draws": 2, "epochs": 1, "seed": 0}),
    "train_surrogate": (
        ab.train_surrogate,
        {"model": MODEL, "x": X, "players": None, "network": None, "epochs": 1, "seed": 0},
    ),
    "write_report": (
        ab.write_report,
        {"results": FOUND, "path": Path(tempfile.gettempdir()) / "fuzz.html", "title": None},
    ),
    "Explanation.plot": (FOUND.plot, {"path": None, "sample": 0, "kind": "bars"}),
    "Audit.plot": (AUDIT.plot, {"path": None}),
    "LearnedBaseline.plot": (LEARNED.plot, {"path": None}),
    "baselines": (ab.plots.baselines, {"learned": LEARNED, "most": 3}),
    "learning_history": (ab.plots.learning_history, {"learned": LEARNED}),
    "and_or_graph": (ab.plots.and_or_graph, {"explanation": FOUND, "sample": 0, "strongest": 3}),
    "image_heat_map": (ab.plots.image_heat_map, {"explanation": IMAGE, "sample": 0}),
    "interaction_list": (ab.plots.interaction_list, {"explanation": FOUND, "sample": 0, "strongest": 3}),
    "overview": (ab.plots.overview, {"explanation": FOUND, "sample": 0}),
    "text_line": (ab.plots.text_line, {"explanation": FOUND, "sample": 0}),
    "new_figure": (
        ab.plots.new_figure,
        {"columns": 1, "width": 5.2, "height": 5.2, "rows": 3, "ratios": None, "title": ""},
    ),
    "bars": (ab.plots.bars, {"explanation": FOUND, "sample": 0, "most": 3}),
    "waterfall": (ab.plots.waterfall, {"explanation": FOUND, "sample": 0, "most": 3}),
    "network": (ab.plots.network, {"explanation": FOUND, "sample": 0, "strongest": 3}),
    "upset": (ab.plots.upset, {"explanation": FOUND, "sample": 0, "strongest": 3}),
    "scatter": (ab.plots.scatter, {"explanation": FOUND, "player": 0}),
    "beeswarm": (ab.plots.beeswarm, {"explanation": FOUND, "most": 3}),
    "order_profile": (ab.plots.order_profile, {"explanation": FOUND, "sample": 0, "most": 3}),
    "sparsity_plot": (ab.plots.sparsity, {"results": FOUND, "sample": None}),
    "shap_masker": (ab.interop.shap_masker, {"absence": 0.0, "players": PLAYERS, "x": X}),
    "to_shap": (ab.interop.to_shap, {"attribution": FOUND.shapley, "x": X, "base_values": FOUND.base_values}),
    "to_shapiq": (ab.interop.to_shapiq, {"result": FOUND.interactions, "sample": 0}),
    "shapiq_game": (ab.interop.shapiq_game, {"game": TABLE, "sample": 0, "normalize": False}),
}
SELDOM = 0.02
# Numbers that are no mistake here, but take hours.
COSTLY = {"draws", "epochs", "evaluations", "drawn", "grown", "seconds", "most", "strongest"}
TOO_MUCH = 1000


class Odd:
    """An object of no use."""

    def __repr__(self) -> str:
        return "odd"


# What an argument may be by mistake.
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2,
    3,
    10**6,
    2**70,
    0.5,
    -0.5,
    float("nan"),
    float("inf"),
    1e308,
    "",
    "mean",
    "blur:2",
    "a",
    b"a",
    (),
    [],
    {},
    [0],
    [0, 0],
    ["a"],
    ["a", "a"],
    [None],
    [[1.0, 2.0, 3.0]],
    [[1.0], [1.0, 2.0]],
    {"a": 1},
    {"a": [0]},
    {"a": ["b"]},
    range(3),
    (1, 4, 4),
    (2, 2),
    1j,
    Odd(),
    Odd,
    len,
    np.int64(2),
    np.float32(0.5),
    np.array(1),
    np.array([]),
    np.zeros((2, 3)),
    np.zeros((0, 3)),
    np.array(["a"]),
    np.array([None]),
    np.array([[np.nan, 1, 2]]),
    np.zeros((2, 3), dtype=complex),
    np.zeros((2, 3))[::-1],
    torch.tensor(1),
    torch.zeros(0),
    torch.zeros(2, 3),
    torch.zeros(2, 3, dtype=torch.int64),
    torch.zeros(2, 3, dtype=torch.bool),
    torch.ones(1, 3, dtype=torch.bool),
    torch.full((2, 3), torch.inf),
    torch.zeros(2, 3, 4, 4),
    torch.zeros(5),
    torch.zeros(2, 3).to_sparse(),
    torch.zeros(2, 3, device="meta"),
    torch.zeros(2, 3, dtype=torch.complex64),
    pd.DataFrame({"a": ["x"]}),
    pd.DataFrame(np.zeros((2, 3))),
    pd.Series([0, 1]),
    Path("nowhere"),
    MODEL,
    X,
    TABLE,
    FOUND,
    SAMPLED,
    IMAGE,
    EFFECTS,
    LEARNED,
    AUDIT,
    nn.Linear(2, 2),
    ab.Baseline(0.0),
    ab.Baseline,
    ab.Players.features(3),
    ab.Players.features(2),
    ab.LogOdds(7),
    lambda: None,
    lambda rows: rows,
    lambda rows: rows.sum(),
    lambda rows: "text",
    lambda rows: rows.sum(1) / 0,
]


def state() -> dict[str, str]:
    """Return what a call must not change."""
    flags = [part.training for part in MODEL.modules()] + [one.requires_grad for one in MODEL.parameters()]
    results = [FOUND.shapley.values, FOUND.interactions.effects, FOUND.x, EFFECTS.effects, LEARNED.values, GAME.x]
    tensors = [X, TABLE.values, *MODEL.state_dict().values(), torch.get_rng_state(), PLAYERS.labels, *results]
    sums = [(float(one.double().sum()), one.dtype) for one in tensors]
    grads = [one.grad for one in MODEL.parameters()]
    modes = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    known = {"flags": flags, "tensors": sums, "gradients": grads, "modes": modes, "random": random.getstate()[1][:3]}
    return {name: str(one) for name, one in known.items()}


def malformed_calls(draw: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Draw calls with one or two arguments replaced."""
    while True:
        calls = SLOW if draw.random() < SELDOM else METHODS if draw.random() < 0.5 else CALLS
        name = draw.choice(list(calls))
        function, usual = calls[name]
        given = dict(usual)
        for argument in draw.sample(list(given), min(len(given), draw.choice((1, 1, 1, 2)))):
            odd = draw.choice(ODD)
            if not (argument in COSTLY and isinstance(odd, int | float) and odd > TOO_MUCH):
                given[argument] = odd
        shown = ", ".join(f"{key}={value!r:.40}" for key, value in given.items() if value is not usual[key])
        yield f"{name}({shown})", lambda function=function, given=given: function(**given)


def damaged_files(draw: random.Random, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Draw saved results with a flipped bit, with a part cut off, or with bytes of another."""
    ab.explain(MODEL, X, 0, absence=0.0).save(folder / "whole")
    whole = (folder / "whole").read_bytes()
    while True:
        damaged = bytearray(whole)
        place = draw.randrange(len(whole))
        way = draw.choice(("flip", "cut", "bytes", "header"))
        if way == "cut":
            damaged = damaged[:place]
        elif way == "bytes":
            damaged[place : place + 8] = draw.randbytes(8)
        else:
            damaged[draw.randrange(1200) if way == "header" else place] ^= 1 << draw.randrange(8)
        (folder / "damaged").write_bytes(damaged)
        yield f"{way} at {place}", lambda: ab.load(folder / "damaged")


def fuzz(seed: int, seconds: float = math.inf, most_calls: float = math.inf) -> tuple[Counter[str], list[str]]:
    """Run malformed calls and damaged files in turn; return the outcomes, and a text for each that is wrong.

    It ends after some time or some calls, whichever comes first. A number of calls makes the run reproducible.
    """
    draw = random.Random(seed)
    counts = Counter[str]()
    wrong = list[str]()
    began = time.perf_counter()
    before = state()
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)  # some calls write files
        sources = [malformed_calls(draw)] * 4 + [damaged_files(draw, Path(folder))]
        while time.perf_counter() - began < seconds and sum(counts.values()) < most_calls:
            shown, call = next(draw.choice(sources))
            try:
                call()
                counts["result"] += 1
            except ab.AbsentiaError:
                counts["sentence"] += 1
            except Exception as error:
                counts["raw"] += 1
                *_, last = traceback.extract_tb(error.__traceback__)
                wrong.append(f"{shown}: {type(error).__name__}: {error!s:.100} at {last.filename}:{last.lineno}")
            if (now := state()) != before:
                what = ", ".join(
                    f"{name} from {before[name]} to {now[name]}" for name in now if now[name] != before[name]
                )
                wrong.append(f"{shown} changed what is not its own: {what:.500}")
                before = now
        os.chdir(home)
    return counts, wrong


def main() -> int:
    """Run for some time or some calls, and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--calls", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.seconds == asked.calls == math.inf:
        parser.error("say when to end: --seconds 3600, or --calls 10000")
    counts, wrong = fuzz(asked.seed, asked.seconds, asked.calls)
    print(*(text.replace("\n", " ") for text in wrong), f"{sum(counts.values()):,} calls: {dict(counts)}", sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
