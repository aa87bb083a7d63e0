"""Ensembles of decision trees: read from the libraries that fit them, and explained from their leaves."""
