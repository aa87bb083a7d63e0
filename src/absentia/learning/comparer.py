"""Comparison of baselines by their loss, which remembers the best baseline and the history."""

from collections.abc import Iterator, Sequence
from itertools import islice

from absentia.learning.assessment import Assessment
from absentia.learning.checkpoint import SearchState
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.pace import Pace
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.space import Baselines, Owners

# The number of parts of the samples that suffice to choose between usual baselines.
_PARTS_OF_A_ROUGH_LOSS = 2


class Comparer:
    """The loss of a search; ``best`` is the best baseline so far, the result of an interrupted search."""

    def __init__(self, objective: PaperObjective | FaithfulObjective, pace: Pace, state: SearchState) -> None:
        self.objective = objective
        self.pace = pace
        self.history = state.history
        self.best: Assessment | None = None

    def running_losses(self, baseline: Baselines) -> Iterator[Owners]:
        """Compute the loss on more and more samples, and remember the best baseline evaluated on all of them."""
        self.check_time()
        for assessment in self.objective.running_assessments(baseline):
            yield assessment.losses
        self.remember_best(assessment)

    def remember_best(self, assessment: Assessment) -> None:
        """Remember baselines that were evaluated on all compared samples, if they are the best so far."""
        self.best = assessment.or_better(self.best)
        least_loss = float(self.best.losses.mean())
        if self.history:
            _, loss_before = self.history[-1]
            least_loss = min(least_loss, loss_before)
        self.remember(least_loss)

    def losses(self, baseline: Baselines) -> Owners:
        """Compute the loss on all compared samples."""
        return list(self.running_losses(baseline))[-1]

    def mean_loss(self, baseline: Baselines) -> float:
        """Compute the loss on all compared samples, averaged over owners."""
        return float(self.losses(baseline).mean())

    def rough_loss(self, baseline: Baselines) -> float:
        """Compute the loss on the first parts of the samples, which suffice to rank baselines."""
        first_losses = list(islice(self.running_losses(baseline), _PARTS_OF_A_ROUGH_LOSS))
        return float(first_losses[-1].mean())

    def compare(self, candidate: Baselines, current: list[Owners], dropped: Sequence[float]) -> list[Owners]:
        """Return a candidate's losses on more and more samples, fewer if it is dropped early.

        It is dropped if its loss on a part of the samples exceeds the current loss by more than that part's factor.
        """
        running_losses: list[Owners] = []
        for losses, current_losses, most_times in zip(self.running_losses(candidate), current, dropped, strict=False):
            running_losses.append(losses)
            if bool((losses > most_times * current_losses).all()):
                break
        return running_losses

    def remember(self, loss: float) -> None:
        """Add a loss to the history, and show it."""
        self.history.append((float(self.objective.evaluations), loss))
        self.pace.show_loss(loss)

    def remember_smoothed(self, loss: float) -> float:
        """Add the loss of a step to the history, smoothed over the steps before it, and return what was added."""
        if self.history:
            _, loss_before = self.history[-1]
            loss = 0.9 * loss_before + 0.1 * loss
        self.remember(loss)
        return loss

    def check_time(self) -> None:
        """End the search if time is up, unless there is nothing to return yet."""
        if self.best is not None or self.objective.rows_per_step:
            self.pace.check_time()
