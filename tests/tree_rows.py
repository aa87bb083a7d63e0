"""Rows that put the reading of trees to the test, and the comparison with the library's own outputs."""

import numpy as np

from absentia.trees.reading import read_trees, verify

# Numbers that libraries may treat as zero, or that are nearly so.
_SMALL = [0.0, -0.0, 1e-35, -1e-35, float(np.float32(1e-35)), -float(np.float32(1e-35)), 1e-36, -1e-40]


def table(random, rows=80, columns=4, missing=0.1, rounded=False):
    """Random rows, of which a share is missing; rounded ones have ties and zeros."""
    x = random.normal(size=(rows, columns))
    if rounded:
        x = x.round(1)
    x[random.random(x.shape) < missing] = np.nan
    return x


def with_categories(x, random, counts):
    """Replace columns by categories, so many in each, of which the missing values stay missing."""
    x = x.copy()
    for column, count in counts.items():
        categories = random.integers(0, count, len(x)).astype(float)
        x[:, column] = np.where(np.isnan(x[:, column]), np.nan, categories)
    return x


def targets(x, random, classes):
    """Numbers that depend on the columns and their products; with classes, their number."""
    filled = np.nan_to_num(x, nan=0.7)
    numbers = filled[:, 0] * filled[:, 1] + np.sin(2 * filled[:, 2]) + random.normal(scale=0.2, size=len(x))
    if classes == 0:
        return numbers
    labels = np.argsort(np.argsort(numbers)) * classes // len(x)
    return labels.astype(int)


def edge_rows(ensemble, random, rows=150, missing=True, infinite=True, fractions=True):
    """Rows at the thresholds of the trees and one step beside them, in single and double precision."""
    x = np.empty((rows, ensemble.columns))
    for column in range(ensemble.columns):
        if ensemble.categorical[column]:
            values = np.arange(-2.0, 12.0)
            if fractions:
                values = np.concatenate([values, values[2:] + 0.5])
        else:
            values = np.concatenate([_around(ensemble.thresholds[column], random), [np.inf, -np.inf]])
            if not infinite:
                values = values[np.abs(values) < np.finfo(np.float32).max]
        x[:, column] = random.choice(values, rows)
    if missing:
        x[random.random(x.shape) < 0.1] = np.nan
    return x


def _around(thresholds, random):
    """Thresholds and their neighbours, with some other numbers."""
    single = np.clip(thresholds, -1e38, 1e38).astype(np.float32)
    infinity = np.float32(np.inf)
    return np.concatenate(
        [
            thresholds,
            np.nextafter(thresholds, np.inf),
            np.nextafter(thresholds, -np.inf),
            single.astype(float),
            np.nextafter(single, infinity).astype(float),
            np.nextafter(single, -infinity).astype(float),
            random.normal(size=10),
            _SMALL,
        ]
    )


def assert_read(model, rows, data=None, precision=np.float64):
    """Check that a model is read, and that its trees predict as the library does; return the reading."""
    reading = read_trees(model)
    assert reading is not None
    assert verify(reading, rows, data) is None
    own = reading.ensemble.predict(rows)
    library = reading.raw_prediction(rows if data is None else data)
    most = 32 * np.finfo(precision).eps * reading.ensemble.largest_sums()
    assert (np.abs(own - library) <= most).all()
    return reading
