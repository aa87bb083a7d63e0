"""transformers: a network of texts and its tokenizer as a model, and texts as samples of words or tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from absentia.absences import Baseline
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


class Texts(NamedTuple):
    """Texts as samples, with their players and an absence that suits them; made by `TextModel.samples`."""

    x: Shaped[Tensor, "texts tokens *width"]
    players: Players
    absence: Baseline


@final
class TextModel(nn.Module):
    """A network of texts as a model of token numbers or of their embeddings; made by `from_transformers`.

    Examples
    --------
    >>> model = ab.interop.from_transformers(network, tokenizer)  # doctest: +SKIP
    >>> x, players, absence = model.samples("not a bad film")  # doctest: +SKIP
    """

    def __init__(self, network: nn.Module, tokenizer: Any, words: bool, stand_in: int, embeddings: bool) -> None:
        super().__init__()
        self.network, self.tokenizer, self.words, self.stand_in = network, tokenizer, words, stand_in
        table: Any = network.get_input_embeddings()  # type: ignore[operator]  # of all networks of transformers
        self._embed = (lambda tokens: table(tokens.to(table.weight.device)).detach()) if embeddings else None
        labels: dict[int, str] = getattr(getattr(network, "config", None), "id2label", None) or {}
        self.class_names = tuple(labels[number] for number in sorted(labels))

    def forward(self, rows: Shaped[Tensor, "rows tokens *width"]) -> Float[Tensor, "rows *output"]:
        """Return the logits. Padding is not attended to."""
        # A tokenizer without padding has no token of this number.
        padding = torch.tensor(-1 if self.tokenizer.pad_token_id is None else self.tokenizer.pad_token_id)
        if self._embed is None:
            return self.network(input_ids=rows.long(), attention_mask=(rows != padding).long()).logits
        attended = (rows != self._embed(padding)).any(-1) if padding >= 0 else torch.ones_like(rows[..., 0])
        return self.network(inputs_embeds=rows, attention_mask=attended.long()).logits

    def samples(self, texts: str | Sequence[str]) -> Texts:
        """Convert a text, or several, to samples. Special tokens are always present.

        Several texts share their players: tokens at the places that all of them have, so that the end of a longer
        text is always present; or words, if these have the same places in all texts.
        """
        given = [texts] if isinstance(texts, str) else list(texts)
        coded = [self.tokenizer(text, return_offsets_mapping=True) for text in given]
        longest, most = max(len(one["input_ids"]) for one in coded), self.tokenizer.model_max_length
        if longest > most:
            raise wrong("texts", f"have at most {most} tokens", longest, "Cut them, or explain them part by part.")
        tokens = torch.full((len(given), longest), self.tokenizer.pad_token_id or 0)
        owners = torch.full((len(given), longest), ALWAYS_PRESENT)
        for row, owner, one in zip(tokens, owners, coded, strict=True):
            row[: len(one["input_ids"])] = torch.tensor(one["input_ids"])
            for place, word in enumerate(one.word_ids()):  # None for special tokens
                owner[place] = ALWAYS_PRESENT if word is None else word if self.words else place
        if self.words and not bool((owners == owners[0]).all()):
            then = 'Explain them one by one, or use from_transformers(…, players="token").'
            raise wrong("texts", "have their words at the same places", "texts of different forms", then)
        shared = owners[0].masked_fill((owners == ALWAYS_PRESENT).any(0), ALWAYS_PRESENT)
        kept, names = shared[shared != ALWAYS_PRESENT].unique(), []
        labels = torch.where(shared == ALWAYS_PRESENT, ALWAYS_PRESENT, torch.searchsorted(kept, shared))
        for owner in kept:
            spans = [coded[0]["offset_mapping"][place] for place in (shared == owner).nonzero().flatten().tolist()]
            names.append(given[0][spans[0][0] : spans[-1][1]].strip() if len(given) == 1 else f"token {owner}")
        stand_in = torch.full((longest,), self.stand_in)
        if self._embed is None:
            return Texts(tokens, Players(labels, tuple(names), integer=True), Baseline(stand_in))
        x = self._embed(tokens)
        labels = labels[:, None].expand(x.shape[1:]).contiguous()
        return Texts(x, Players(labels, tuple(names)), Baseline(self._embed(stand_in)))


def from_transformers(
    model: nn.Module, tokenizer: Any, *, players: str = "word", absence: str | None = None, embeddings: bool = False
) -> TextModel:
    """Make a model of a network of Hugging Face's transformers that classifies texts, and of its tokenizer.

    Its method ``samples`` converts texts to ``x``, ``players`` and ``absence``. Its ``class_names`` are those of the
    network.

    Parameters
    ----------
    model : nn.Module
        A network that returns ``logits``, such as AutoModelForSequenceClassification.from_pretrained(name).
    tokenizer : object
        The network's fast tokenizer, such as AutoTokenizer.from_pretrained(name).
    players : {"word", "token"}, default "word"
        Whether the tokens of a word are present together.
    absence : {"mask", "pad"}, optional
        What stands in for absent tokens: the mask token, the default where the tokenizer has one, or padding, which
        the network does not attend to.
    embeddings : bool, default False
        Whether samples are the embeddings of tokens, so that `learn_baseline` learns by gradient what stands in.

    Examples
    --------
    >>> reader = ab.interop.from_transformers(network, tokenizer)  # doctest: +SKIP
    >>> text = reader.samples("not a bad film")  # doctest: +SKIP
    >>> ab.explain(reader, text.x, absence=text.absence, players=text.players)  # doctest: +SKIP
    """
    if not hasattr(model, "get_input_embeddings"):
        raise wrong("model", "be a network of transformers", type(model).__name__)
    if not getattr(tokenizer, "is_fast", False):
        then = "Use AutoTokenizer.from_pretrained(name)."
        raise wrong("tokenizer", "be a fast tokenizer of transformers", type(tokenizer).__name__, then)
    if players not in ("word", "token"):
        raise wrong("players", "be 'word' or 'token'", repr(players))
    known = {"mask": tokenizer.mask_token_id, "pad": tokenizer.pad_token_id}
    found = [name for name, token in known.items() if token is not None]
    if not found or absence not in (None, *found):
        then = "Give the tokenizer such a token, as in tokenizer.pad_token = tokenizer.eos_token."
        must = f"be a token that the tokenizer has: {', '.join(found) or 'none'}"
        raise wrong("absence", must, repr(absence), then)
    return TextModel(model, tokenizer, players == "word", known[absence or found[0]], embeddings)
