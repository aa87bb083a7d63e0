"""Words of commands that run on the files of own_files.py, and the check that they succeed."""

MODEL = ["--model", "mymodule:build", "--weights", "w.safetensors"]
DATA = ["--data", "data.csv", "--target", "kind"]
QUICK = ["--steps", "1", "--rows-per-comparison", "256", "--samples", "4", "--loss", "marginal"]


def succeed(found):
    code, out, err = found
    assert code == 0, err
    return out
