"""Solvers: from the values of a game to terms and attributions."""
