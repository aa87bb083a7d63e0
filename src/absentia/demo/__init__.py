"""The demonstration: two real models, trained here, audited and explained."""

from absentia.demo.story import Effort, run

__all__ = ["Effort", "run"]
