import pytest
import torch
from torch import nn

import absentia as ab
from experiments.networks import (
    ARCHITECTURES,
    CIFAR_STATISTICS,
    MNIST_STATISTICS,
    Normalise,
    Residual,
    TextCNN,
    TextLSTM,
    alexnet,
    build,
    lenet,
    mlp,
    resnet,
    vgg16,
)

ALEXNET_CONVOLUTIONS = [(1, 64), (64, 192), (192, 384), (384, 256), (256, 256)]


def weights(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(
    ("architecture", "parameters"),
    [
        ("12-100-100-2", 1300 + 10100 + 202),
        ("lenet", 61_706),
        ("alexnet", sum(9 * a * b + b for a, b in ALEXNET_CONVOLUTIONS) + 2305 * 1024 + 1025 * 512 + 513 * 10),
        ("resnet20", 269_722),  # 0.27 M in table 6 of He et al.
        ("resnet32", 464_154),  # 0.46 M
        ("vgg16", 14_728_266),
        ("resnet32-1", 464_154 - 2 * 9 * 16),  # of one colour instead of three
        ("vgg16-1", 14_728_266 - 2 * 9 * 64),
        ("cnn-1000", 1000 * 128 + sum(128 * 100 * kernel + 100 for kernel in (3, 4, 5)) + 301 * 2),
        ("cnn-7", 7 * 128 + sum(128 * 100 * kernel + 100 for kernel in (3, 4, 5)) + 301 * 2),
        ("lstm-1000", 1000 * 128 + 2 * 4 * 128 * (128 + 128 + 2) + 257 * 2),
    ],
)
def test_networks_have_as_many_parameters_as_are_known(architecture, parameters):
    assert count(build(architecture, seed=0)) == parameters


@pytest.mark.parametrize("architecture", ["lenet", "alexnet", "resnet20", "vgg16", "cnn-20", "lstm-20", "3-4-2"])
def test_a_seed_fixes_the_first_weights_and_leaves_the_global_generator_alone(architecture):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = weights(build(architecture, seed=3))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(weights(build(architecture, seed=3)), first)
    assert not torch.equal(weights(build(architecture, seed=4)), first)


INPUTS = {
    **dict.fromkeys(["lenet", "alexnet"], (torch.rand(3, 1, 28, 28), 10)),
    **dict.fromkeys(["resnet20", "resnet32", "vgg16"], (torch.rand(3, 3, 32, 32), 10)),
    **dict.fromkeys(["cnn", "lstm"], (torch.tensor([[5, 9, 3, 7], [4, 0, 0, 0], [6, 2, 8, 0]]), 2)),
}


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_every_network_tells_samples_apart_and_every_weight_has_a_gradient(name):
    x, classes = INPUTS[name]
    network = build(f"{name}-30" if name in ("cnn", "lstm") else name, seed=0).eval()
    logits = network(x)
    assert logits.shape == (3, classes)
    assert min((logits[i] - logits[j]).abs().max() for i, j in ((0, 1), (0, 2), (1, 2))) > 1e-4
    # In evaluation mode each sample is computed for itself.
    torch.testing.assert_close(network(x[1:2]), logits[1:2], atol=1e-5, rtol=1e-4)
    nn.functional.cross_entropy(logits, torch.tensor([0, 1, 1])).backward()
    without = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert without == []


@pytest.mark.parametrize("architecture", ["lenett", "lenet-3", "cnn", "cnn-0", "cnn-many", "3", "3-0-2", "cnn-3-4-5"])
def test_what_names_no_network_is_refused(architecture):
    with pytest.raises(ab.AbsentiaError, match=r"architecture must be widths such as 12-100-100-2, or one of lenet"):
        build(architecture, seed=0)


@pytest.mark.parametrize("widths", [(), (3,), (3, 0, 2)])
def test_widths_that_make_no_network_are_refused(widths):
    with pytest.raises(ab.AbsentiaError, match="widths must be two or more positive numbers"):
        mlp(widths, seed=0)


@pytest.mark.parametrize("layers", [2, 18, 21])
def test_layers_that_make_no_residual_network_are_refused(layers):
    with pytest.raises(ab.AbsentiaError, match=r"layers must be 6n \+ 2"):
        resnet(layers)


@pytest.mark.parametrize(("network", "statistics"), [(lenet(), MNIST_STATISTICS), (resnet(20), CIFAR_STATISTICS)])
def test_images_are_normalised_inside_the_network(network, statistics):
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in statistics)
    assert isinstance(network[0], Normalise)
    size = 28 if len(mean) == 1 else 32
    x = torch.rand(2, len(mean), size, size)
    torch.testing.assert_close(network[0](x), (x - mean) / std)
    torch.testing.assert_close(network.eval()(x), network[1:]((x - mean) / std))


def test_a_network_has_as_many_layers_with_weights_as_its_name_says():
    for network, layers in ((resnet(20), 20), (resnet(32), 32), (vgg16(), 14), (lenet(), 5), (alexnet(), 8)):
        assert sum(isinstance(module, nn.Conv2d | nn.Linear) for module in network.modules()) == layers


def test_a_shortcut_passes_its_input_on_and_fills_new_channels_with_zeros():
    block = Residual(4, 8, stride=2).eval()
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    x = torch.rand(3, 4, 6, 6)
    output = block(x)
    assert torch.equal(output[:, 2:6], x[:, :, ::2, ::2])
    assert (output[:, [0, 1, 6, 7]] == 0).all()


@pytest.fixture(params=[TextCNN, TextLSTM], ids=["cnn", "lstm"])
def reader(request):
    torch.manual_seed(1)
    return request.param(30, 8, 6).eval()


SENTENCES = torch.tensor([[5, 9, 3, 7, 2, 8, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0], [6, 2, 0, 4, 0, 0, 0, 0]])


def test_a_prediction_does_not_depend_on_the_zeros_after_a_sentence(reader):
    with torch.no_grad():
        expected = reader(SENTENCES)
        torch.testing.assert_close(reader(nn.functional.pad(SENTENCES, (0, 9))), expected)
        torch.testing.assert_close(reader(SENTENCES[:, :6]), expected)


def test_a_prediction_does_not_depend_on_the_other_sentences(reader):
    with torch.no_grad():
        alone = torch.cat([reader(sentence[None]) for sentence in SENTENCES])
        torch.testing.assert_close(reader(SENTENCES), alone)


def test_words_count_and_so_does_their_order(reader):
    with torch.no_grad():
        sentence = SENTENCES[:1]
        other, turned = sentence.clone(), sentence.clone()
        other[0, 2] = 11
        turned[0, :6] = sentence[0, :6].flip(0)
        assert not torch.allclose(reader(other), reader(sentence))
        assert not torch.allclose(reader(turned), reader(sentence))


def test_a_sentence_without_words_is_one_word_whose_vector_is_zero(reader):
    with torch.no_grad():
        if isinstance(reader, TextCNN):  # every window of zeros gives the bias
            maxima = torch.cat([convolution.bias for convolution in reader.convolutions]).relu()
        else:
            maxima = reader.lstm(torch.zeros(1, 1, 8))[0][0, 0]
        torch.testing.assert_close(reader(torch.zeros(2, 5, dtype=torch.int64)), reader.linear(maxima).expand(2, -1))


def test_the_recurrent_network_reads_each_sentence_in_both_directions():
    """The formula for one sentence after the other, without rows of padding."""
    torch.manual_seed(2)
    network = TextLSTM(30, 8, 6).eval()
    with torch.no_grad():
        for sentence, length in zip(SENTENCES, (6, 1, 4), strict=True):
            vectors = network.embedding(sentence[:length])
            forward = _read(network.lstm, vectors, "")
            backward = _read(network.lstm, vectors.flip(0), "_reverse")
            states = torch.cat([forward, backward.flip(0)], dim=1)
            torch.testing.assert_close(network(sentence[None])[0], network.linear(states.amax(0)))


def _read(lstm, vectors, direction):
    """The states of one direction of a recurrent layer, gate by gate."""
    inner, outer = (getattr(lstm, f"weight_{side}h_l0{direction}") for side in "hi")
    bias = getattr(lstm, f"bias_hh_l0{direction}") + getattr(lstm, f"bias_ih_l0{direction}")
    state = cell = torch.zeros(lstm.hidden_size)
    states = []
    for vector in vectors:
        into, keep, new, out = (outer @ vector + inner @ state + bias).chunk(4)
        cell = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
        state = out.sigmoid() * cell.tanh()
        states.append(state)
    return torch.stack(states)


def test_the_convolutions_see_every_window_of_a_short_sentence():
    """The formula, window by window, for one sentence without any padding by the network."""
    torch.manual_seed(2)
    network = TextCNN(30, 8, 6).eval()
    vectors = network.embedding(SENTENCES[0, :6])
    maxima = []
    for convolution in network.convolutions:
        kernel = convolution.kernel_size[0]
        padded = torch.cat([torch.zeros(kernel - 1, 8), vectors, torch.zeros(kernel - 1, 8)])
        windows = torch.stack([padded[i : i + kernel].T for i in range(6 + kernel - 1)])
        maxima.append((torch.einsum("wdk,fdk->wf", windows, convolution.weight) + convolution.bias).amax(0))
    expected = network.linear(torch.cat(maxima).relu())
    torch.testing.assert_close(network(SENTENCES[:1])[0], expected)


def test_the_value_of_a_coalition_is_that_of_the_sentence_with_zeros_for_absent_words(reader):
    game = ab.MaskedModel(reader, SENTENCES, 1, players=ab.Players.tokens(8), absence=ab.Baseline(0.0))
    table = ab.value_table(game)
    with torch.no_grad():
        for number in (0, 0b1, 0b101100, 0b11011111, 0b11111111):
            present = torch.tensor([bool(number >> place & 1) for place in range(8)])
            logits = reader(torch.where(present, SENTENCES, 0)).double()
            torch.testing.assert_close(table.values[:, number], logits[:, 1] - logits[:, 0], atol=1e-5, rtol=1e-5)
