import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.fuzzing import fuzz

FUZZING = Path(__file__).parent / "fuzzing.py"


@pytest.mark.slow
def test_malformed_calls_and_damaged_files_end_with_a_result_or_a_sentence_and_change_nothing():
    """In a process of its own, without the checks of types by the tests."""
    ran = subprocess.run([sys.executable, FUZZING, "--calls", "6000"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(re.search(r"'sentence': (\d+)", ran.stdout)[1]) > 5000


def test_the_fuzzer_notices_what_it_looks_for(monkeypatch):
    import absentia as ab
    from fuzz import fuzzing

    def broken(path):
        fuzzing.MODEL.eval()
        raise KeyError(path)

    monkeypatch.setattr(fuzzing, "CALLS", {"load": (broken, {"path": "a"})})
    monkeypatch.setattr(ab, "load", broken)
    _, wrong = fuzz(seed=0, most_calls=5)
    fuzzing.MODEL.train()
    assert any("KeyError" in text for text in wrong)
    assert any("changed what is not its own" in text for text in wrong)
