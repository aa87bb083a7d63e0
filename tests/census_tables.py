"""A small table as people have them: text, categories, booleans, whole numbers and, if asked for, gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

WORK = ["clerk", "farmer", "teacher"]
LEVELS = ["none", "school", "college"]  # an order of its own, not the alphabet's


def census(rows: int = 160, gaps: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Return people and whether they earn much, which depends on every column."""
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows).astype(float),
            "work": draw.choice(WORK, rows),
            "level": pd.Categorical(draw.choice(LEVELS, rows), categories=LEVELS),
            "member": draw.random(rows) < 0.5,
            "hours": pd.array(draw.integers(10, 60, rows), dtype="Int64"),
        },
        index=[f"person {number}" for number in range(rows)],
    )
    score = (
        (frame.age > 45) * 1.0
        + (frame.work == "teacher") * 1.5
        + (frame.level == "college") * 1.2
        + frame.member * 0.7
        + (frame.hours.astype(float) - 35) / 20
    )
    earns_much = (score + draw.normal(scale=0.3, size=rows) > 2.2).to_numpy().astype(int)
    if gaps:
        frame.loc[frame.index[::7], "age"] = np.nan
        frame.loc[frame.index[3::11], "work"] = None
        frame.loc[frame.index[5::13], "level"] = np.nan
        frame.loc[frame.index[2::9], "hours"] = pd.NA
    return frame, earns_much


def as_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with text as categories, as boosters take them."""
    return frame.astype({"work": "category"})


def pipeline(frame: pd.DataFrame, y: np.ndarray, last_step: Any = None) -> Pipeline:
    """Fit a pipeline that fills gaps in, and encodes text and categories one-hot."""
    columns = ColumnTransformer(
        [
            (
                "categories",
                make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
                ["work", "level"],
            ),
            ("numbers", SimpleImputer(), ["age", "hours", "member"]),
        ]
    )
    last_step = GradientBoostingClassifier(n_estimators=10, random_state=0) if last_step is None else last_step
    return Pipeline([("columns", columns), ("classifier", last_step)]).fit(_plain(frame), y)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"hours": float, "level": object})


def boosters(frame: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    """Fit boosters on pandas' categories."""
    import lightgbm
    import xgboost

    frame = as_categories(frame)
    return {
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=5, verbose=-1, n_jobs=1).fit(frame, y),
        "xgboost": xgboost.XGBClassifier(enable_categorical=True, n_estimators=10, n_jobs=1).fit(frame, y),
        "histogram": HistGradientBoostingClassifier(
            categorical_features="from_dtype", max_iter=10, min_samples_leaf=5
        ).fit(frame, y),
    }
