"""Models that take time by the clock of the tests, and count the batches that begin after a deadline."""

import torch

import absentia as ab


class Slow:
    """A model that takes a while for each batch, and counts those that begin after its deadline."""

    def __init__(self, clock, seconds, pause=0.05, per_row=0.0):
        self.clock = clock
        self.deadline = clock.now + seconds + 0.01  # the limit itself begins a moment later
        self.pause = pause
        self.per_row = per_row
        self.late = 0

    def __call__(self, rows):
        if self.clock.now > self.deadline:
            self.late += 1
        self.clock.advance(self.pause + self.per_row * len(rows))
        return rows.prod(1) + rows.sum(1)


def without_gradient(model):
    return ab.from_numpy(lambda rows: model(torch.from_numpy(rows)).numpy())


class SlowAtWorkers:
    """A model that notes in a file each batch that begins after its deadline. Workers run copies of it."""

    def __init__(self, clock, seconds, path):
        self.clock = clock
        self.deadline = clock.now + seconds + 0.01
        self.path = path

    def __call__(self, rows):
        if self.clock.now > self.deadline:
            with self.path.open("a") as file:
                file.write("late\n")
        self.clock.advance(0.05)
        return rows.prod(1) + rows.sum(1)
