"""The verdict of an audit in sentences: which method to use, why not the others, and reasons for doubt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from absentia.auditing.estimates import Estimate, Mean
from absentia.auditing.verdict import NAMED
from absentia.text import percent, with_error, written

if TYPE_CHECKING:
    from absentia.auditing.findings import Audit

# Rounding errors are reported beyond this share of a strength.
_MUCH_ROUNDING = 0.05
# Masked samples beyond this multiple of the usual distance are far from the data.
_FAR = 2.0
# The maximum number of methods that are named if none is recommended.
_MOST_NAMED = 4
# The maximum number of players that a warning names.
_MOST_PLAYERS = 4
# The maximum number of other methods that the recommendation mentions.
_MOST_OTHERS = 3
# The recommendation mentions one method of each of these stages, in this order.
_TELLING_STAGES = ("length", "score", "invents", "leaks")


def recommend(audit: Audit) -> str:
    """Say which method to use, how sure this is, and why not the best method of each other stage."""
    judgement = audit.judgement
    winner = judgement.winner
    if winner is None:
        return _recommend_none(audit)
    claims = _claims(audit, winner)
    length = float(audit.length.value[winner])
    if not math.isnan(length):
        claims = f"{claims} and needs {length:,.0f} interactions"
    others = _telling_others(audit, winner)
    if others:
        claims = f"{claims}; {', '.join(others)}"
    if judgement.clear:
        share = percent(judgement.confidence)
        return f"Use {audit.methods[winner]} (in {share} of resamples): it {claims}."
    return f"{_name_tied(audit)} {audit.methods[winner]} {claims}."


def _name_tied(audit: Audit) -> str:
    """Name the methods that the resamples do not decide between, with their wins, and say what would decide."""
    judgement = audit.judgement
    tied = [audit.methods[number] for number in judgement.level]
    shares = {audit.methods[number]: judgement.shares[number] for number in judgement.level}
    none_is_likely = judgement.share_of_none >= NAMED
    if none_is_likely:
        shares["none"] = judgement.share_of_none
    wins = _list_wins(shares)
    if len(tied) > 1:
        names = f"{', '.join(tied[:-1])} or {tied[-1]}"
        return f"Use {names}: level ({wins}). {_what_tells_apart(judgement.times_the_samples, len(tied))}"
    outlook = _what_makes_it_clear(judgement.times_the_samples)
    if none_is_likely:
        return f"Use {tied[0]}, or none of these: {wins}. {outlook}"
    return f"Use {tied[0]}: {wins}, each other method in less than {percent(NAMED)}. {outlook}"


def _list_wins(shares: dict[str, float]) -> str:
    """Say in which share of the resamples each method wins."""
    (first, share), *others = shares.items()
    return ", ".join(
        [f"{first} wins in {percent(share)} of resamples", *(f"{name} in {percent(share)}" for name, share in others)]
    )


def _what_tells_apart(times_the_samples: int | None, methods: int) -> str:
    """Say how many samples would tell methods apart, or that they are equally good."""
    if times_the_samples is not None:
        return f"About {times_the_samples} times as many samples would tell them apart."
    if methods == 2:
        return "More samples would not tell them apart: use either."
    return "More samples would not tell them apart: use any."


def _what_makes_it_clear(times_the_samples: int | None) -> str:
    """Say how many samples would make the answer clear, if any would."""
    if times_the_samples is None:
        return "More samples would not make this clear."
    return f"About {times_the_samples} times as many samples would make this clear."


def _recommend_none(audit: Audit) -> str:
    """Say that no method is recommended, and why."""
    judgement = audit.judgement
    if "" in judgement.stages:
        return "No recommendation: the score of masked samples was not measured."
    reasons = ", ".join(f"{audit.methods[number]} {_reason(audit, number)}" for number in audit.order[:_MOST_NAMED])
    advice = "Try a baseline that learn_baseline(model, x, y) finds."
    if judgement.judged:
        return f"Use none of these (in {percent(audit.confidence)} of resamples): {reasons}. {advice}"
    return f"Use none of these: {reasons}. {advice}"


def _telling_others(audit: Audit, winner: int) -> list[str]:
    """Say why not the other methods: the best one of each stage, and at most three."""
    judgement = audit.judgement
    level = {winner, *judgement.level}
    best_of_stage: dict[str, int] = {}
    for number in audit.order:
        if number not in level:
            best_of_stage.setdefault(judgement.stages[number], number)
    chosen = [best_of_stage[stage] for stage in _TELLING_STAGES if stage in best_of_stage]
    return [f"{audit.methods[number]} {_reason(audit, number)}" for number in chosen[:_MOST_OTHERS]]


def _claims(audit: Audit, number: int, errors: bool = False) -> str:
    """Say in a few words how much a method leaks and invents."""
    leak = f"leaks {_amount(audit, audit.leak, number, errors)}"
    invention = f"invents {_amount(audit, audit.invention, number, errors)}"
    leaks = audit.leaks(number)
    invents = audit.invents(number)
    if leaks and invents:
        return f"{leak} and {invention}"
    if leaks:
        return leak
    if invents and audit.curve.all_absent:
        return f"leaks nothing, {invention}"
    if invents:
        return invention
    if audit.curve.all_absent:
        return "neither leaks nor invents"
    return "invents nothing"


def _amount(audit: Audit, figure: Estimate, number: int, errors: bool) -> str:
    """Write a figure in its unit, with or without its error."""
    value = float(figure.value[number])
    if errors:
        text = with_error(value, float(figure.error[number]))
    else:
        text = written(value, 2)
    return f"{text} {audit.curve.unit}"


def _reason(audit: Audit, number: int) -> str:
    """Say in a few words why a method is not recommended."""
    judgement = audit.judgement
    if number in judgement.level and not judgement.clear:
        return f"is level, and wins in {percent(judgement.shares[number])} of resamples"
    score = written(float(audit.score.value[number]))
    match judgement.stages[number]:
        case "surrogate":
            return f"explains another model: its score, {score}, is a floor for the others"
        case "leaks":
            return f"leaks {_amount(audit, audit.leak, number, errors=False)}"
        case "invents":
            return f"invents {_amount(audit, audit.invention, number, errors=False)}"
        case "score":
            return f"{_worse(audit, number)} (score {score})"
        case "length":
            return _price(audit, number)
        case "distance":
            return f"is level, but {_further(audit, number)}"
        case "best":
            return "is the one to use"
    return "could not be compared"


def _worse(audit: Audit, number: int) -> str:
    """Say that a method predicts worse, on all samples or only in most resamples."""
    winner = audit.order[0]
    if float(audit.score.value[number]) > float(audit.score.value[winner]):
        return "predicts worse"
    return "predicts worse in most resamples"


def _further(audit: Audit, number: int) -> str:
    """Say why a level method is second: it is further from the data, or predicts a little worse."""
    winner = audit.order[0]
    if audit.plausibility.beyond[number] > audit.plausibility.beyond[winner]:
        return "further from the data"
    return "no closer to the data, and predicts no better"


def _price(audit: Audit, number: int) -> str:
    """Say how many more interactions a method needs, and whether it predicts better."""
    winner = audit.order[0]
    longer = float(audit.length.value[number] / audit.length.value[winner])
    digits = 3 if longer < 10 else 2
    needs = f"needs {written(longer, digits)} times the interactions"
    gain = 1 - float(audit.score.value[number] / audit.score.value[winner])
    if round(100 * gain) >= 1:
        return f"predicts {percent(gain)} better but {needs}"
    return needs


def describe_method(audit: Audit, number: int) -> str:
    """Describe one method in a line."""
    name = audit.methods[number]
    stage = audit.judgement.stages[number]
    if stage == "surrogate":
        return f"{name} {_reason(audit, number)}."
    claims = _claims(audit, number, errors=True)
    if stage == "leaks":
        return f"{name} {claims}: masked samples still tell what they were."
    if stage == "invents":
        return f"{name} {claims}, more than there is to know ({written(audit.curve.limit, 2)})."
    return f"{name} {claims}; it {_reason(audit, number)}."


def doubts_about_the_measurement(audit: Audit) -> Iterator[str]:
    """Give reasons to doubt leak and invention."""
    empty = audit.empty
    samples = len(empty.prior)
    if samples == 1:
        yield "One sample has no standard error: pass more samples to get errors."
    advantage_of_whole = Mean.of((empty.prior - empty.whole)[:, None])
    scored_by_class = audit.curve.unit == "nats"
    if scored_by_class and samples > 1 and not empty.reason and not advantage_of_whole.is_above():
        yield "The model predicts no better than the class frequencies, so leak and invention say little."


def doubts_about_stand_ins(audit: Audit) -> Iterator[str]:
    """Warn about stand-ins that are unlike the data, those of the recommended method first."""
    for number in audit.order:
        name = audit.methods[number]
        distance = float(audit.plausibility.distance[number])
        if distance > _FAR:
            yield f"{name} makes samples that lie {distance:.2g} times as far from the data as its own rows do."
        is_outside = audit.plausibility.outside[number].tolist()
        outside = [player for player, out in zip(audit.region, is_outside, strict=True) if out]
        if outside:
            yield f"{name} uses values outside the data's range for {_list_players(outside)}."


def _list_players(players: list[str]) -> str:
    """Name the first few players, and count the others."""
    listed = ", ".join(players[:_MOST_PLAYERS])
    if len(players) > _MOST_PLAYERS:
        return f"{listed} and {len(players) - _MOST_PLAYERS} more"
    return listed


def doubts_about_removal(audit: Audit) -> Iterator[str]:
    """Give reasons to doubt R."""
    removal = audit.removal
    samples = len(removal.original)
    kept = int(removal.kept.sum())
    games = describe_games(samples, audit.record.samples, audit.record.game_players, len(audit.region))
    if games and audit.record.game_players:
        yield f"R is measured {games}."
    if kept:
        rounding = float((removal.rounding / removal.original.mean(1))[removal.kept].quantile(0.5))
        if rounding > _MUCH_ROUNDING:
            yield (
                f"Rounding errors can make up {percent(rounding)} of the effects: run the model in double precision."
            )
    if kept < samples:
        yield f"{samples - kept} of {samples} samples are left out of R: the model ignores their region."
    if kept and not removal.noise_is_weaker:
        noise = 100 * (1 - float(removal.unmasked.value))
        yield f"White noise has {noise:,.0f} % of the effects of the samples themselves: R says little."


def describe_games(samples: int, all_samples: int, players: int, all_players: int) -> str:
    """Say on how many samples, and in games of how many players, a figure is measured."""
    parts = []
    if samples < all_samples:
        parts.append(f"on {samples} of the samples")
    if players < all_players:
        parts.append(f"in games of {players} of the {all_players} players, drawn for each sample")
    return " and ".join(parts)
