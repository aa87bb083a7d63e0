"""Results as objects for JSON, and samples as text."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import absentia as ab
from absentia.auditing.audit_record import AuditRecord
from absentia.explanation import ExplanationRecord
from absentia.learning.learned import LearningRecord
from absentia.plots.drawable import players_and_inputs

# A sample in text shows the inputs of at most this many players.
_MOST_INPUTS = 8


def learned_payload(learned: ab.LearnedBaseline) -> dict[str, Any]:
    """Return a learned baseline for JSON."""
    return {
        "command": "learn",
        "outcome": learned.outcome,
        "names": learned.names,
        "share": learned.share,
        "classes": learned.classes,
        "values": learned.values,
        "loss": learned.loss,
        "record": record_payload(learned.record),
    }


def explanation_payload(explanation: ab.Explanation, rows: Sequence[int]) -> dict[str, Any]:
    """Return an explanation of these rows of the data for JSON."""
    samples = [{"sample": row} | _sample_payload(explanation, place) for place, row in enumerate(rows)]
    return {
        "command": "explain",
        "players": explanation.names,
        "samples": samples,
        "record": record_payload(explanation.record),
    }


def audit_payload(result: ab.Audit | ab.CrossAudit) -> dict[str, Any]:
    """Return an audit for JSON: the answer, how sure it is, and all figures of each method with their errors."""
    if isinstance(result, ab.CrossAudit):
        return _cross_audit_payload(result)
    payload: dict[str, Any] = {
        "command": "audit",
        "recommended": result.recommended,
        "confidence": result.confidence,
        "level": result.level,
        "verdict": result.verdict,
        "warnings": result.warnings,
        "notes_on_R": result.notes_on_R,
        "players": result.players,
        "region": result.region,
        "record": record_payload(result.record),
    }
    payload["none_wins"] = result.judgement.share_of_none
    payload["samples_needed"] = result.judgement.times_the_samples or 0  # 0 if none would be enough
    columns = {name: values.tolist() for name, values in result.columns().items()}
    payload["methods"] = {}
    for number, method in enumerate(result.methods):
        payload["methods"][method] = {name: values[number] for name, values in columns.items()}
    return payload


def record_payload(record: LearningRecord | ExplanationRecord | AuditRecord) -> dict[str, Any]:
    """Return a record for JSON, with what was read and why the run stopped in words."""
    payload = {"readout": record.readout} | asdict(record)
    del payload["readout_note"]
    if isinstance(record, LearningRecord):
        del payload["end"]
        payload["stopped"] = record.stopped
    if isinstance(record, AuditRecord):
        del payload["stop"]
        payload["stopped"] = record.stopped
    return payload


def _cross_audit_payload(result: ab.CrossAudit) -> dict[str, Any]:
    """Return a cross audit for JSON."""
    return {
        "command": "audit",
        "methods": result.methods,
        "references": result.references,
        "R": result.R,
        "errors": result.errors,
        "record": record_payload(result.record),
    }


def _sample_payload(explanation: ab.Explanation, place: int) -> dict[str, Any]:
    """Return the explanation of one sample for JSON."""
    names = explanation.names
    inputs = explanation.players.named_values(explanation.x[[place]])[0]
    strongest = [] if explanation.interactions is None else explanation.interactions.top(10, sample=place)
    return {
        "name": explanation.sample_name(place),
        "inputs": dict(zip(names, inputs, strict=True)),
        "class": None if explanation.y is None else int(explanation.y[place]),
        "output": explanation.outputs[place],
        "base_value": explanation.base_values[place],
        "efficiency_gap": explanation.efficiency_gap[place],
        "shapley": dict(zip(names, explanation.shapley.values[place].tolist(), strict=True)),
        "errors": dict(zip(names, explanation.shapley.errors[place].tolist(), strict=True)),
        "strongest_interactions": [
            {"players": interaction.players, "effect": interaction.effect} for interaction in strongest
        ],
    }


def sample_text(explanation: ab.Explanation, place: int) -> str:
    """Name a sample, its class, and the inputs of a table with the largest Shapley values."""
    names = players_and_inputs(explanation, place)
    is_single = explanation.players.single.tolist()
    ranked = explanation.shapley.ranked(place)[:_MOST_INPUTS]
    inputs = [names[player] for player, _ in ranked if is_single[player]]
    name = explanation.sample_name(place)
    return f"{name} ({', '.join(inputs)})" if inputs else name
