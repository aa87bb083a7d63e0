"""The verdict of an audit: which method to use by the rule "honest first, then short", why not others, warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from absentia.audit.estimates import is_above
from absentia.audit.removal import FAR
from absentia.results import with_error, written

if TYPE_CHECKING:
    from absentia.audit.findings import Audit

# Rounding errors are reported beyond this share of a strength.
_MUCH_ROUNDING = 0.05
_MOST_WARNINGS = 3
_NEGLIGIBLE = 1e-3  # evidence, which rounding errors may have
# At which stage a method is dropped, from first to last; "best" is the one to use, "" one that could not be compared.
_STAGES = ("surrogate", "leaks", "invents", "", "score", "strength", "R", "distance", "best")


@dataclass(frozen=True, eq=False)
class Verdict:
    """What follows from the figures of an audit."""

    found: Audit

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """At which stage each method is dropped: see `audit`. A figure that was not measured decides nothing."""
        found, curve, stages = self.found, self.found.curve, [""] * len(self.found.methods)

        def drop(stage: str, out: Callable[[int], bool]) -> None:
            for number in left():
                stages[number] = stage if out(number) else ""

        def left() -> list[int]:
            return [number for number, stage in enumerate(stages) if not stage]

        def keep_lowest(stage: str, values: Tensor) -> None:
            known = [number for number in left() if not math.isnan(float(values[number].mean()))]
            if known:
                best = min(known, key=lambda number: float(values[number].mean()))
                drop(stage, lambda number: is_above(values[number] - values[best]))

        drop("surrogate", lambda number: found.methods[number] in found.record.surrogates)
        drop("leaks", lambda number: curve.all_absent and is_above(-curve.beyond_prior[number] - _NEGLIGIBLE))
        drop("invents", lambda number: is_above(curve.beyond_prior[number] - curve.limit))
        if left() and not curve.score.value.isnan().any():
            keep_lowest("score", curve.means)
            keep_lowest("strength", found.companions.strengths)
            keep_lowest("R", found.removal.ratios)
            distance, score = found.plausibility.distance.nan_to_num(math.inf).tolist(), curve.score.value.tolist()
            stages[min(left(), key=lambda number: (distance[number], score[number]))] = "best"
            drop("distance", lambda number: True)
        return tuple(stages)

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods: the one to use, then those that were dropped last, the best score first."""
        figures = self.found.curve.score.value if len(self.found.curve.prior) else self.found.removal.R.value
        places = [-_STAGES.index(stage) for stage in self.stages]
        ranked = sorted(zip(places, figures.nan_to_num(math.inf).tolist(), range(len(places)), strict=True))
        return tuple(number for _, _, number in ranked)

    def sentences(self) -> list[str]:
        """Return the recommendation, and then a line for each method, the best first."""
        if not len(self.found.curve.prior):
            return ["Use none by this audit: it did not measure whether methods leak or invent."]
        return [self._recommend(), *(self._describe(number) for number in self.order)]

    def _recommend(self) -> str:
        first, stages = self.order[0], self.stages
        if "best" not in stages:
            if "" in stages:
                return "Use none by this audit: v(N) does not vary, so that there is nothing to predict."
            listed = ", ".join(f"{self.found.methods[number]} {self._reason(number)}" for number in self.order[:4])
            return f"Use none of these: {listed}. Try a baseline that learn_baseline(model, x, y) finds."
        terms = float(self.found.companions.terms[first].mean())
        invents = "leaks nothing, " * self._invents(first) + self._evidence(first)
        needs = "" if math.isnan(terms) else f" and needs {terms:,.0f} interactions"
        # One method for each stage says most.
        others = {stages[number]: number for number in reversed(self.order[1:])}
        shown = [others[stage] for stage in ("strength", "score", "invents", "leaks") if stage in others][:3]
        text = ", ".join(f"{self.found.methods[number]} {self._reason(number)}" for number in shown)
        return f"Use {self.found.methods[first]}: it {invents}{needs}{'; ' * bool(text)}{text}."

    def _evidence(self, number: int, errors: bool = False) -> str:
        value, error = self.found.curve.evidence.at(number)
        amount = f"{with_error(abs(value), error) if errors else written(abs(value), 2)} {self.found.curve.unit}"
        if self.stages[number] == "leaks":
            return f"leaks {amount}"
        return f"invents {amount}" if self._invents(number) else "neither leaks nor invents"

    def _invents(self, number: int) -> bool:
        return is_above(self.found.curve.beyond_prior[number] - _NEGLIGIBLE)

    def _reason(self, number: int) -> str:
        """Say in a few words why a method is not the one to use."""
        stage, score = self.stages[number], written(float(self.found.curve.score.value[number]))
        strengths = self.found.companions.strengths.mean((1, 2))
        more = float(strengths[number] / strengths[self.order[0]])
        if stage in ("leaks", "invents"):
            return self._evidence(number)
        return {
            "surrogate": f"explains another model: its score, {score}, is a floor for the others",
            "": "could not be compared",
            "score": f"predicts worse (score {score})",
            "strength": f"has {written(more, 3 if more < 1.5 else 2)} times the Σ|U|",
            "R": f"has a higher R ({written(float(self.found.R.value[number]), 2)})",
            "distance": "is as good, but not closer to the data",
            "best": "is the one to use",
        }[stage]

    def _describe(self, number: int) -> str:
        """Describe one method in a line."""
        name, stage, limit = self.found.methods[number], self.stages[number], written(self.found.curve.limit, 2)
        if stage == "surrogate":
            return f"{name} {self._reason(number)}."
        why = {
            "leaks": ": masked samples still tell what they were",
            "invents": f", more than there is to know ({limit})",
        }
        return f"{name} {self._evidence(number, errors=True)}{why.get(stage, f'; it {self._reason(number)}')}."

    def warnings(self) -> list[str]:
        """Return at most three reasons to doubt the figures or the methods, the most important first."""
        return [*self._warn_of_the_measurement(), *self._warn_of_stand_ins()][:_MOST_WARNINGS]

    def _warn_of_the_measurement(self) -> Iterator[str]:
        curve, removal = self.found.curve, self.found.removal
        if len(curve.prior) == 1:
            yield "One sample has no standard error: pass more samples to get errors."
        own = [name not in self.found.record.surrogates for name in self.found.methods]
        if len(curve.prior) > 1 and not is_above((curve.prior - curve.scores[own][:1, :, -1].flatten())[:, None]):
            yield "The model predicts no better than the class frequencies, so evidence says little."
        samples, kept = len(removal.original), int(removal.kept.sum())
        share = float((removal.rounding / removal.original.mean(1))[removal.kept].quantile(0.5)) if kept else 0.0
        if share > _MUCH_ROUNDING:
            yield f"Rounding errors can make up {share:.0%} of the effects: run the model in double precision."
        if kept < samples:
            yield f"{samples - kept} of {samples} samples are left out of R: the model ignores their region."
        if kept and not removal.noise_is_weaker:
            share = 100 * (1 - float(removal.unmasked.value))
            yield f"White noise has {share:.0f} % of the effects of the samples themselves: R says little."

    def _warn_of_stand_ins(self) -> Iterator[str]:
        """Warn of stand-ins unlike the data, those of the recommended method first."""
        for number in self.order:
            name, ratio = self.found.methods[number], float(self.found.plausibility.distance[number])
            if ratio > FAR:
                yield f"{name} makes samples that lie {ratio:.2g} times as far from the data as its own rows do."
            beyond = self.found.plausibility.outside[number].tolist()
            outside = [player for player, out in zip(self.found.region, beyond, strict=True) if out]
            if outside:
                shown = ", ".join(outside[:4]) + (f" and {len(outside) - 4} more" if len(outside) > 4 else "")
                yield f"{name} uses values outside the data's range for {shown}."
