"""Users' models, samples, players, absences and readouts, from the files and words that a command line is given.

Naming a Python object is consent to import it. A file that could run code when it is read is refused, unless the user
trusts where it comes from.
"""

from absentia.loading.absences import load_absences, saved_coding
from absentia.loading.as_model import as_model, takes_tokens
from absentia.loading.coding import Coding
from absentia.loading.models import LoadedModel, load_model
from absentia.loading.players import load_players
from absentia.loading.raw_data import RawData, read_data
from absentia.loading.readouts import load_readout
from absentia.loading.samples import Samples, make_samples

__all__ = [
    "Coding",
    "LoadedModel",
    "RawData",
    "Samples",
    "as_model",
    "load_absences",
    "load_model",
    "load_players",
    "load_readout",
    "make_samples",
    "read_data",
    "saved_coding",
    "takes_tokens",
]
