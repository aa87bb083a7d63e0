"""The experiments of the paper: its data, its networks, and one module for each experiment.

They use only the public names of absentia, and run with ``python -m experiments NAME``.
"""
