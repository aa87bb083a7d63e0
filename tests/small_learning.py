"""Learning by interactions, polished, at a small cost, with options beside the other arguments."""

from dataclasses import fields

from absentia.learning import LearningOptions, learn_baseline

OPTIONS = {field.name for field in fields(LearningOptions)}


def learn(model, x, y=None, **given):
    """Learn a baseline; keyword arguments that are fields of the options go there."""
    chosen = {"rows_per_comparison": 2**12, "polish": True} | {name: given.pop(name) for name in OPTIONS & set(given)}
    return learn_baseline(model, x, y, options=LearningOptions(**chosen), **{"loss": "interactions"} | given)
