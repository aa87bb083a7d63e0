"""Samples, images and tables with categories as the commands read them."""

import numpy as np
import pandas as pd

import absentia as ab
from absentia.cli.data_files import read_data
from absentia.cli.sample_files import make_samples
from own_files import make_network, make_rows

NETWORK = make_network()
ROWS, CLASSES = make_rows()


def samples(source="data.csv", target="kind", model=NETWORK, background=None, **options):
    other = None if background is None else read_data(background, target, argument="background")
    names = {key: options.pop(key) for key in ("classes", "coding") if key in options}
    return make_samples(read_data(source, target, **options), model, other, **names)


def write_images(folder, names=("cat", "dog"), shape=(4, 4), count=3):
    from PIL import Image

    rng = np.random.default_rng(0)
    pixels = {}
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            array = rng.integers(0, 256, shape, dtype=np.uint8)
            Image.fromarray(array).save(folder / name / f"{number}.png")
            pixels[name, number] = array
    return pixels


def table_frame():
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    frame["city"] = np.array(["Oslo", "Bern", "Rome"])[np.arange(40) % 3]
    frame["new"] = np.arange(40) % 2 == 0
    frame["kind"] = np.array(["no", "yes"])[CLASSES]
    return frame


def fitted():
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = table_frame()
    coded = make_column_transformer((OneHotEncoder(), ["city", "new"]), remainder="passthrough")
    return make_pipeline(coded, LogisticRegression()).fit(frame.drop(columns="kind"), frame["kind"])


def learn(share="all", **options):
    quick = ab.LearningOptions(steps=1, rows_per_comparison=256)
    return ab.learn_baseline(
        make_network(), ROWS[:8], CLASSES[:8], share=share, loss="marginal", options=quick, **options
    )
