"""transformers: text classifiers with their tokenizers as models, and texts as samples of words or tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from absentia.absences import Baseline
from absentia.arguments import checked
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


class Texts(NamedTuple):
    """Texts as samples, with their players and a suitable absence, as returned by `TextModel.samples`."""

    x: Shaped[Tensor, "texts tokens *width"]
    players: Players
    absence: Baseline


@final
class TextModel(nn.Module):
    """A text classifier as a model of token numbers or their embeddings, as returned by `from_transformers`.

    Examples
    --------
    >>> model = ab.interop.from_transformers(network, tokenizer)  # doctest: +SKIP
    >>> x, players, absence = model.samples("not a bad film")  # doctest: +SKIP
    """

    def __init__(self, network: nn.Module, tokenizer: Any, words: bool, stand_in: int, embeddings: bool) -> None:
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer
        self.words = words  # whether the tokens of a word are one player
        self.stand_in = stand_in  # the number of the token that stands in for absent ones
        self.embeddings = embeddings  # whether rows hold embeddings rather than token numbers
        labels: dict[int, str] = getattr(getattr(network, "config", None), "id2label", None) or {}
        self.class_names = tuple(labels[number] for number in sorted(labels))

    def forward(self, rows: Shaped[Tensor, "rows tokens *width"]) -> Float[Tensor, "rows *output"]:
        """Return the logits. Padding is not attended to."""
        attention_mask = self._attention_mask(rows)
        if self.embeddings:
            return self.network(inputs_embeds=rows, attention_mask=attention_mask).logits
        return self.network(input_ids=rows.long(), attention_mask=attention_mask).logits

    def _attention_mask(self, rows: Tensor) -> Tensor:
        """Return 1 for each token that is not padding, and 0 for padding."""
        padding = self.tokenizer.pad_token_id
        if padding is None:
            return torch.ones(rows.shape[:2], dtype=torch.long, device=rows.device)
        if self.embeddings:
            return (rows != self._embed(torch.tensor(padding))).any(-1).long()
        return (rows != padding).long()

    def _embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings of tokens by the network's own table."""
        table: Any = self.network.get_input_embeddings()  # type: ignore[operator]  # all of transformers' networks have it
        embedded: Tensor = table(tokens.to(table.weight.device)).detach()
        return embedded

    def samples(self, texts: str | Sequence[str]) -> Texts:
        """Convert one or more texts to samples. Special tokens are always present.

        Several texts share their players. Tokens are players at the positions that all texts have, so the end of a
        longer text is always present. Words are players only if they are at the same positions in all texts.
        """
        all_texts = [texts] if isinstance(texts, str) else list(texts)
        encodings = [self.tokenizer(text, return_offsets_mapping=True) for text in all_texts]
        tokens = self._padded_tokens(encodings)
        owners = self._shared_owners(encodings, longest=tokens.shape[1])
        distinct_owners = owners[owners != ALWAYS_PRESENT].unique()
        is_always_present = owners == ALWAYS_PRESENT
        labels = torch.where(is_always_present, ALWAYS_PRESENT, torch.searchsorted(distinct_owners, owners))
        if len(all_texts) == 1:
            names = [_text_of(owners == owner, all_texts[0], encodings[0]) for owner in distinct_owners]
        else:
            names = [f"token {owner}" for owner in distinct_owners]
        stand_ins = torch.full((tokens.shape[1],), self.stand_in)
        if not self.embeddings:
            return Texts(tokens, Players(labels, tuple(names), integer=True), Baseline(stand_ins))
        x = self._embed(tokens)
        labels = labels[:, None].expand(x.shape[1:]).contiguous()
        return Texts(x, Players(labels, tuple(names)), Baseline(self._embed(stand_ins)))

    def _padded_tokens(self, encodings: Sequence[Any]) -> Int[Tensor, "texts tokens"]:
        """Return the token numbers of all texts, padded to the longest one."""
        longest = max(len(encoding["input_ids"]) for encoding in encodings)
        most = self.tokenizer.model_max_length
        if longest > most:
            then = "Truncate them, or explain them part by part."
            raise wrong("texts", f"have at most {most} tokens", longest, then)
        tokens = torch.full((len(encodings), longest), self.tokenizer.pad_token_id or 0)
        for row, encoding in zip(tokens, encodings, strict=True):
            row[: len(encoding["input_ids"])] = torch.tensor(encoding["input_ids"])
        return tokens

    def _shared_owners(self, encodings: Sequence[Any], longest: int) -> Int[Tensor, " tokens"]:
        """Return the word or token that owns each position in all texts; none where any text has a special token."""
        owners = torch.full((len(encodings), longest), ALWAYS_PRESENT)
        for row, encoding in zip(owners, encodings, strict=True):
            for position, word in enumerate(encoding.word_ids()):
                if word is not None:  # None marks a special token
                    row[position] = word if self.words else position
        if self.words and not bool((owners == owners[0]).all()):
            then = 'Explain them one by one, or use from_transformers(…, players="token").'
            raise wrong("texts", "have their words at the same positions", "words at different positions", then)
        is_special_in_any = (owners == ALWAYS_PRESENT).any(0)
        return owners[0].masked_fill(is_special_in_any, ALWAYS_PRESENT)


def _text_of(is_own: Bool[Tensor, " tokens"], text: str, encoding: Any) -> str:
    """Return the part of a text from the first to the last of a player's own tokens."""
    spans = [encoding["offset_mapping"][position] for position in is_own.nonzero().flatten().tolist()]
    start, _ = spans[0]
    _, end = spans[-1]
    return text[start:end].strip()


@checked
def from_transformers(
    model: nn.Module, tokenizer: Any, *, players: str = "word", absence: str | None = None, embeddings: bool = False
) -> TextModel:
    """Make a model from a text classifier of Hugging Face's transformers and its tokenizer.

    The method ``samples`` of the model converts texts to ``x``, ``players`` and ``absence``. Its ``class_names`` are
    those of the network.

    Parameters
    ----------
    model : nn.Module
        A network that returns ``logits``, such as AutoModelForSequenceClassification.from_pretrained(name).
    tokenizer : object
        The network's fast tokenizer, such as AutoTokenizer.from_pretrained(name).
    players : {"word", "token"}, default "word"
        Whether the tokens of a word are present together.
    absence : {"mask", "pad"}, optional
        What stands in for absent tokens: the mask token, or padding, which the network does not attend to. The
        default is the mask token if the tokenizer has one.
    embeddings : bool, default False
        Whether samples are the embeddings of tokens, so that `learn_baseline` can learn stand-ins by gradient.

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
    stand_ins = {"mask": tokenizer.mask_token_id, "pad": tokenizer.pad_token_id}
    available = [name for name, token in stand_ins.items() if token is not None]
    if not available or absence not in (None, *available):
        must = f"be a token that the tokenizer has: {', '.join(available) or 'none'}"
        then = "Give the tokenizer such a token, as in tokenizer.pad_token = tokenizer.eos_token."
        raise wrong("absence", must, repr(absence), then)
    stand_in = stand_ins[absence or available[0]]
    return TextModel(model, tokenizer, words=players == "word", stand_in=stand_in, embeddings=embeddings)
