"""Networks of transformers: words and tokens are players, and absent ones are masked as by hand."""

import pytest
import torch

import absentia as ab

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "not",
    "a",
    "bad",
    "film",
    "un",
    "##believ",
    "##able",
    "!",
]
NUMBERS = {word: number for number, word in enumerate(VOCABULARY)}
PAD = NUMBERS["[PAD]"]
MASK = NUMBERS["[MASK]"]


@pytest.fixture(scope="module")
def tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(NUMBERS, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, NUMBERS[name]) for name in ("[CLS]", "[SEP]")]
    )
    words = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=12, **words)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
        initializer_range=1.0,
        id2label={0: "praise", 1: "blame"},
    )
    return transformers.BertForSequenceClassification(config).eval()


def log_odds(network, rows, attended=None):
    with torch.no_grad():
        logits = network(input_ids=torch.tensor(rows), attention_mask=attended).logits
    return (logits[:, 0] - logits[:, 1]).double()


def test_words_of_a_sentence_have_attributions(network, tokenizer):
    reader = ab.interop.from_transformers(network, tokenizer)
    text = reader.samples("not unbelievable!")
    assert text.players.names == ("not", "unbelievable", "!")
    assert text.players.labels.tolist() == [-1, 0, 1, 1, 1, 2, -1]
    explanation = ab.explain(reader, text.x, ["praise"], absence=text.absence, players=text.players)
    assert explanation.record.class_names == ("praise", "blame")  # the network's own, which need not be passed
    tokens = [2, 5, 9, 10, 11, 12, 3]
    assert text.x.tolist() == [tokens]
    masked = [[2, MASK, MASK, MASK, MASK, MASK, 3], [2, 5, MASK, MASK, MASK, MASK, 3], tokens]
    empty, alone, full = log_odds(network, masked)
    torch.testing.assert_close(explanation.base_values[0], empty, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(explanation.outputs[0], full, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(explanation.interactions.effects[0, 1], alone - empty, atol=1e-5, rtol=1e-5)
    assert "praise" in str(explanation)


def test_tokens_are_players_of_their_own(network, tokenizer):
    text = ab.interop.from_transformers(network, tokenizer, players="token").samples("not unbelievable")
    assert text.players.names == ("not", "un", "believ", "able")
    assert text.players.labels.tolist() == [-1, 0, 1, 2, 3, -1]


@pytest.mark.parametrize("embeddings", [False, True])
def test_padding_is_not_attended_to(network, tokenizer, embeddings):
    reader = ab.interop.from_transformers(network, tokenizer, absence="pad", embeddings=embeddings)
    text = reader.samples("not bad")
    game = ab.MaskedModel(reader, text.x, [0], absence=text.absence, players=text.players)
    attended = torch.tensor([[1, 0, 1, 1]])
    expected = log_odds(network, [[2, PAD, 7, 3]], attended)
    torch.testing.assert_close(game(torch.tensor([[False, True]]))[0].double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_embeddings_explain_as_tokens_do_and_can_be_learned(network, tokenizer):
    found = {}
    for embeddings in (False, True):
        reader = ab.interop.from_transformers(network, tokenizer, embeddings=embeddings)
        text = reader.samples("not a bad film")
        found[embeddings] = ab.explain(reader, text.x, [0], absence=text.absence, players=text.players)
    torch.testing.assert_close(found[True].shapley.values, found[False].shapley.values, atol=1e-4, rtol=1e-4)
    texts = reader.samples(["not a bad film", "a bad film !", "a film not bad", "not bad ! film"])
    assert texts.x.shape == (4, 6, 8)
    quick = ab.LearningOptions(steps=3, rows_per_step=256)
    learned = ab.learn_baseline(reader, texts.x, [0, 1, 0, 1], players=texts.players, options=quick)
    assert learned.values.shape == (6, 8)
    rows = texts.x.clone().requires_grad_()
    reader(rows).square().sum().backward()
    assert bool((rows.grad.abs().sum(-1) > 0).all())
    again = ab.explain(reader, texts.x[:1], [0], absence=learned, players=texts.players)
    assert not torch.allclose(again.shapley.values, found[True].shapley.values)


def test_longer_texts_keep_their_ends(network, tokenizer):
    reader = ab.interop.from_transformers(network, tokenizer, players="token")
    texts = reader.samples(["a bad film !", "not bad"])
    assert texts.players.labels.tolist() == [-1, 0, 1, -1, -1, -1]
    assert texts.x[1].tolist() == [2, 5, 7, 3, PAD, PAD]
    together = ab.explain(reader, texts.x, [0, 0], absence=texts.absence, players=texts.players)
    alone = reader.samples("not bad")
    apart = ab.explain(reader, alone.x, [0], absence=alone.absence, players=alone.players)
    torch.testing.assert_close(together.shapley.values[1], apart.shapley.values[0], atol=1e-4, rtol=1e-4)


def test_what_cannot_be_explained_gets_a_sentence(network, tokenizer):
    reader = ab.interop.from_transformers(network, tokenizer)
    with pytest.raises(ab.AbsentiaError, match="texts must have their words at the same positions"):
        reader.samples(["unbelievable", "a bad film"])
    with pytest.raises(ab.AbsentiaError, match=r"texts must have at most 12 tokens\. Got 22"):
        reader.samples("bad " * 20)
    with pytest.raises(ab.AbsentiaError, match="tokenizer must be a fast tokenizer"):
        ab.interop.from_transformers(network, str.split)
    with pytest.raises(ab.AbsentiaError, match="model must be a network of transformers"):
        ab.interop.from_transformers(torch.nn.Identity(), tokenizer)
    with pytest.raises(ab.AbsentiaError, match="players must be 'word' or 'token'"):
        ab.interop.from_transformers(network, tokenizer, players="words")
    with pytest.raises(ab.AbsentiaError, match=r"be a token that the tokenizer has: mask, pad\. Got 'zero'"):
        ab.interop.from_transformers(network, tokenizer, absence="zero")
