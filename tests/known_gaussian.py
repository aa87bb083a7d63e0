"""An oracle for conditional absences: a Gaussian whose conditional distributions are known in closed form."""

import torch

ENTRIES = 4
MEAN = torch.tensor([1.0, -2.0, 0.0, 5.0]).double()
DEVIATION = torch.tensor([1.0, 0.5, 3.0, 10.0]).double()
CORRELATION = torch.tensor(
    [[1.0, 0.8, 0.5, 0.0], [0.8, 1.0, 0.6, -0.3], [0.5, 0.6, 1.0, 0.2], [0.0, -0.3, 0.2, 1.0]]
).double()
COVARIANCE = DEVIATION[:, None] * CORRELATION * DEVIATION


def draw(rows, seed=0):
    noise = torch.randn(rows, ENTRIES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return MEAN + noise @ torch.linalg.cholesky(COVARIANCE).T


def conditional(x, coalition, mean=MEAN, covariance=COVARIANCE):
    """Give mean (samples, entries) and covariance of all entries, given the present ones, one coalition at a time."""
    present = coalition.nonzero().flatten()
    slope = torch.linalg.solve(covariance[present][:, present], covariance[present])
    expected = mean + (x[:, present] - mean[present]) @ slope
    return expected, covariance - covariance[:, present] @ slope


def error(fill, x, coalitions):
    """Tell how far the means over draws are from the conditional means, in standard deviations, on average."""
    means = fill(slice(None), coalitions[None].expand(len(x), -1, -1)).mean(2)
    apart = []
    for number, coalition in enumerate(coalitions):
        expected, _ = conditional(x, coalition)
        apart.append(((means[:, number] - expected) / DEVIATION)[:, ~coalition].square().flatten())
    return float(torch.cat(apart).mean().sqrt())
