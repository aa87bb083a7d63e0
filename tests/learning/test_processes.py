"""Processes of torchrun learn together."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

LEARNING = """
    import sys
    import torch
    import torch.distributed
    import absentia as ab

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    x = torch.randn(101, 5)  # which two processes can't share evenly
    y = model(x).argmax(1)
    few = ab.LearningOptions(steps=8, rows_per_step=512)
    settings = {"faithful": {}, "of a class": {"share": "class"}, "marginal": {"loss": "marginal"}}
    together = torch.distributed.is_torchelastic_launched()
    if together:
        torch.distributed.init_process_group("gloo")
    found = [ab.learn_baseline(model, x, y, options=few, **one).values for one in settings.values()]
    if not together or torch.distributed.get_rank() == 0:
        torch.save([values.double() for values in found], sys.argv[1])
    if together:
        torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_processes_of_torchrun_learn_the_values_of_one_process(tmp_path):
    script = tmp_path / "learn.py"
    script.write_text(textwrap.dedent(LEARNING))
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, command in (("one", [sys.executable]), ("two", together)):
        done = subprocess.run([*command, script, tmp_path / name], env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
    one, two = (torch.load(tmp_path / name) for name in ("one", "two"))
    for alone, shared in zip(one, two, strict=True):
        torch.testing.assert_close(alone, shared, atol=1e-6, rtol=0)
