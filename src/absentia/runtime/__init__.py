"""How rows run through a model."""
