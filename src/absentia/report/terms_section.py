"""The section of terms: interactions of samples without their inputs, and the values that they add up to."""

from __future__ import annotations

from typing import Any

from absentia.games import MAX_PLAYERS
from absentia.plots.drawable import describe_change
from absentia.plots.interaction_plots import names_of_sets
from absentia.plots.strongest_sets import count_salient, count_sets, ends_of, strongest_sets
from absentia.report.section import Section
from absentia.report.shown_interactions import add_interactions
from absentia.report.shown_values import count_shown, values_by_order, values_of_sample, values_overall
from absentia.terms import Terms
from absentia.terms_in_words import name_with_basis
from absentia.text import count_of, written


def terms_section(terms: Terms) -> Section:
    """Return the section of terms."""
    names = terms.names
    shown = count_shown(terms.samples, len(names))
    samples = [_sample(terms, number) for number in range(shown)]
    data: dict[str, Any] = {
        "names": list(names),
        "samples": samples,
        "text": False,
        "single": [False] * len(names),
        "settings": _settings(terms),
    }
    add_interactions(data, terms)
    if terms.samples > 1 and terms.adds_up:
        data["overall"] = values_overall(terms.shapley())
    heading = f"Interactions of {count_of(terms.samples, 'sample')}, {len(names)} players"
    return Section("terms", heading, samples[0]["answer"], terms, data)


def _sample(terms: Terms, number: int) -> dict[str, Any]:
    """Return the numbers of one sample, to draw and as shown."""
    ends = ends_of(terms, number)
    sample_terms = terms.only(number)
    if ends is None:
        return {"choice": f"sample {number}", "answer": f"Sample {number}: {_strongest_in_words(sample_terms)}"}
    attribution = sample_terms.shapley()
    value = "the value is"
    if terms.readout != "given":
        value = f"the value ({terms.readout}) is"
    change = describe_change(value, attribution, 0, ends, terms.names)
    data: dict[str, Any] = {
        "choice": f"sample {number}: {written(ends.output, 4)}",
        "answer": f"Sample {number}: {change} {_strongest_in_words(sample_terms)}",
    }
    data |= values_of_sample(attribution, 0, ends)
    if terms.errors is None and len(terms.names) <= MAX_PLAYERS:
        data["orders"] = values_by_order(sample_terms.order_shapley(), 0)
    return data


def _strongest_in_words(sample_terms: Terms) -> str:
    """Name the strongest interaction of the only sample, and say how many are salient."""
    sets = strongest_sets(sample_terms, 0, 1)
    if not sets:
        return "No set of players has an effect."
    strongest = sets[0]
    (name,) = names_of_sets([[sample_terms.names[player] for player in strongest.players]])
    effect = written(strongest.effect, 4, plus=True)
    if strongest.error > 0:
        effect += f" ± {written(strongest.error, 2)}"
    total = count_sets(sample_terms)
    salient = count_salient(sample_terms, 0)
    interactions = name_with_basis(f"{total:,} interactions", sample_terms.basis, sample_terms.fidelity is not None)
    return f"The strongest of {interactions} is {name} ({effect}); {salient:,} are salient."


def _settings(terms: Terms) -> list[tuple[str, str]]:
    """Return what is known about the origin of the terms."""
    sets = "all sets of players"
    if not terms.is_full:
        sets = f"{count_of(len(terms.effects), 'listed set')} of players in all samples"
        if terms.adds_up:
            sets += "; all others have no effect"
    settings = [("Value", terms.readout), ("Sets", sets), ("Effects", _quality(terms)), ("Basis", terms.basis)]
    if terms.absence:
        settings.append(("Absence", terms.absence))
    settings.append(("Cost", count_of(terms.evaluations, "evaluation") + " of the model"))
    return settings


def _quality(terms: Terms) -> str:
    """Say whether effects are exact, estimated or fitted."""
    if terms.is_exact:
        return "exact"
    qualities = []
    if terms.errors is not None:
        qualities.append("estimated, with standard errors; the errors of their sums are unknown")
    if terms.fidelity is not None:
        qualities.append("fitted; the share of the variation is measured on coalitions that the fit did not see")
    return "; ".join(qualities)
