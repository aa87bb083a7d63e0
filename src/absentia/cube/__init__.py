"""A Gaussian process on the cube of coalitions: its kernel, its fit, and what follows from it in closed form."""
