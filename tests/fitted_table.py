"""A small table, an estimator fitted to it, and the same table with its columns swapped."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

RNG = np.random.default_rng(0)
TRAINING_TABLE = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.normal(size=200)})
CLASSES = (TRAINING_TABLE.a + 0.3 * RNG.normal(size=200) > 0).astype(int)
FITTED = LogisticRegression().fit(TRAINING_TABLE, CLASSES)
SWAPPED = TRAINING_TABLE[["b", "a"]]


def log_odds(estimator, rows):
    probability = estimator.predict_proba(rows)
    return np.log(probability[:, 1] / probability[:, 0])
