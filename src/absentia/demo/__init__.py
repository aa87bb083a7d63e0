"""The demonstration: a network that reads digits, trained here, audited and explained."""

from absentia.demo.story import Effort, run

__all__ = ["Effort", "run"]
