"""Solvers: compute terms and attributions from the values of a game."""
