"""The experiments of the paper: its data, its networks, and one module for each experiment.

They use only the public names of absentia, and run with ``python -m experiments NAME``.
"""

import os

# Some virtual machines announce instructions for matrices (AMX) that they cannot run: a linear layer in bfloat16 then
# ends the process with "Illegal instruction". Without these instructions training is slower, and always works.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
