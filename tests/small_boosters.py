"""Small boosters of every library, and the data that they are fitted to."""

import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import GradientBoostingClassifier

import absentia as ab

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(200, 4))
TWO = (X[:, 0] + X[:, 1] * X[:, 2] + GENERATOR.normal(scale=0.7, size=200) > 0).astype(int)
THREE = TWO + (X[:, 3] > 0.3)


def own_loss(truth, predicted):
    """Logistic loss as a loss of the user's own: the gradient and the curvature."""
    p = 1 / (1 + np.exp(-predicted))
    return p - truth, p * (1 - p)


def xgb(y=TWO, **settings):
    return xgboost.XGBClassifier(**{"n_estimators": 20, "max_depth": 3, "n_jobs": 1} | settings).fit(X, y)


def lgb(y=TWO, **settings):
    usual = {"n_estimators": 20, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    return lightgbm.LGBMClassifier(**usual | settings).fit(X, y)


def gb(y=TWO, **settings):
    return GradientBoostingClassifier(n_estimators=20, random_state=0, **settings).fit(X, y)


def outputs(model, rows=X, readout=None, **settings):
    """The full values that an explanation has."""
    readout = ab.LogOdds(1) if readout is None else readout
    return ab.explain(model, rows[:40], readout=readout, absence=0.0, **settings).outputs.numpy()


def note(model, y=None):
    return ab.explain(model, X[:40], y, absence=0.0).record.readout
