"""The public functions of the audit: `audit` and `cross_audit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from absentia.absences import Absence
from absentia.absences.protocol import describe_absence
from absentia.arguments import checked
from absentia.auditing.audit_run import NO_TIME, Run, make_record
from absentia.auditing.audit_setup import Setup, check_settings
from absentia.auditing.cross_audits import CrossAudit
from absentia.auditing.findings import Audit
from absentia.auditing.measuring import removal_steps
from absentia.auditing.plausibility import compare_with_data
from absentia.auditing.subject import Absences, Region, Subject
from absentia.data import Categorical, Classes, Table, check_number
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator
from absentia.players import Players
from absentia.readouts import Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.task import Task


@checked
def audit(
    model: Any,
    x: Table,
    y: Classes = None,
    absences: Absences | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    region: Region | None = None,
    reference: Absence | str | float = "noise",
    draws: int = 5,
    data: Table | None = None,
    tau: float | None = None,
    max_players: int = 16,
    categorical: Categorical = (),
    class_names: Iterable[str] | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> Audit:
    """Measure whether absences leak, invent, and how long an account they need; and recommend one.

    Every absence is measured on the same samples and coalitions:

    1. *Leak*: what fully masked samples still tell of their class. *Invention*: what the stand-ins assert on their
       own. Both are parts of the log-loss of fully masked samples. Their predictions are recalibrated by a scale and
       class offsets, on samples that the fit did not see. Leak is the score of the class frequencies less that of
       recalibrated predictions, invention the score of predictions as they are less the same. For other readouts the
       score is the squared difference to v(N), as a share of its variance.
    2. *Score*: the same log-loss over coalitions of all sizes (the masking curve).
    3. *Length*: the number of interactions that rebuild all values of a sample's game to 5 %, as a geometric mean.
    4. The distance of masked samples to the data, and the paper's R = E_x[(Σ|U′| − Σ|U_noise|) / Σ|U|], which
       compares the effects of samples whose ``region`` is masked, replaced by noise, or left as it is
       [ren2023faithful], against a ``reference`` in the place of absent players.

    The recommendation is *honest first, then short*. Out are leaks beyond their error and 5 % of the prior's score,
    and inventions beyond their error and all that there is to know: log(classes), or the variance. Of the others
    those are level whose score is within 10 % of the prior's score of the best, but at most a third of what
    predictions on whole samples are better than the prior. Of these the shortest is recommended; lengths within a
    factor of 1.25 are level, and then the closest to the data is, or the best score if several are as close as its
    own rows. All of this is decided by resamples of half of the samples and draws: the absence that wins most often
    is recommended, and ``confidence`` is its share. A surrogate explains another model: it is a floor, and never
    recommended. Where some entries are always present, what they tell is no leak.

    Random absences are measured with the draws that `explain` uses, and errors count that others might be drawn.

    Parameters
    ----------
    model, x, y, players, readout, class_names
        The model on a batch of samples: see `MaskedModel`. At most 500 samples, drawn at random, are audited. Without
        ``y``, the classes are those that the model predicts for whole samples.
    absences : mapping, or sequence of words, numbers or absences, optional
        What to audit, with or without names. The default is the usual absences for this kind of data.
    region : sequence of str or int, optional
        Names or numbers of the players to mask for R; by default all.
    reference : Absence, str or float, default "noise"
        "noise" is white noise in the range of ``data``, drawn anew for each sample and draw.
    draws : int, default 5
        The number of draws of the noise, and at most of each absence that R is measured with.
    data : Tensor, array or DataFrame, optional
        Rows such as those that the model was trained on, for the range of white noise and for absences given by
        words; by default ``x``.
    tau : float, optional
        The size above which an effect is salient; by default 5 % of a sample's largest.
    max_players : int, default 16
        More players than this are audited in games of at most 12 of them, drawn anew for each sample and draw.
    categorical : sequence, optional
        Columns of categories besides those that the players know, as in `learn_baseline`: white noise has their
        values of random rows of ``data``.
    evaluations : int, optional
        How many rows the model may evaluate in all; by default what a model of its size does in up to a minute on
        two cores. Where all coalitions take more, fewer samples are audited, and then drawn games of fewer players.
    seconds : float, optional
        A limit on the time, checked before each batch of the model. What is measured by then, or when Ctrl-C is
        pressed, is returned.
    seed : int, default 0
        The seed of every random draw.

    Examples
    --------
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.audit(lambda rows: (rows - 0.5).prod(1), x, absences={"zero": 0.0, "half": 0.5})
    >>> found.recommended
    'half'
    """
    limit = TimeLimit(seconds)
    check_number("tau", tau, 0)
    try:
        evaluator = _read_samples(model, x, y, players, readout, class_names, categorical, limit)
        check_settings(draws, max_players)
        subject = Subject.of(evaluator, region, data, seed)
        setup = Setup.of(subject, absences, draws, max_players, evaluations)
        setup = replace(setup, reference=setup.make_reference(reference), tau=tau)
    except OutOfTime as error:
        raise limit.too_short(len(x), NO_TIME) from error
    run = Run(setup)
    stopped = run.work()
    masked_inputs = [setup.masked.get(name) for name in setup.methods]
    plausibility, note = compare_with_data(
        masked_inputs, subject.data, subject.data_range, subject.region, subject.seed
    )
    notes = setup.notes()
    if note:
        notes.append(note)
    summary = run.summary
    fully_masked = summary.fully_masked()
    record = make_record(
        setup,
        run.costs,
        notes,
        reference=_describe_reference(reference),
        threshold="above 5 % of a sample's largest" if tau is None else f"above {tau:g}",
        stopped=stopped,
    )
    return Audit(
        methods=tuple(setup.methods),
        players=evaluator.names,
        measured_curve=summary.curve(fully_masked.prior),
        removal=summary.removal(),
        companions=summary.games(),
        plausibility=plausibility,
        record=record,
        samples=setup.numbers,
        fully_masked=fully_masked,
    )


@checked
def cross_audit(
    model: Any,
    x: Table,
    y: Classes = None,
    absences: Absences | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    region: Region | None = None,
    draws: int = 5,
    data: Table | None = None,
    max_players: int = 16,
    categorical: Categorical = (),
    class_names: Iterable[str] | None = None,
    seed: int = 0,
) -> CrossAudit:
    """Measure R of every absence against white noise and against every absence: how R depends on the reference.

    Parameters
    ----------
    model, x, y, absences, players, readout, region, draws, data, max_players, categorical, class_names, seed
        See `audit`. Absences that bring their own model are refused.

    Examples
    --------
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> bool(found.R[1, 0] <= 0)
    True
    """
    evaluator = _read_samples(model, x, y, players, readout, class_names, categorical)
    check_settings(draws, max_players)
    setup = Setup.of(Subject.of(evaluator, region, data, seed), absences, draws, max_players)
    if setup.surrogates:
        raise wrong("absences", "mask the model's input", f"{setup.surrogates[0]!r}, which brings its own model")
    references = ["noise", *(method.absence for method in setup.methods.values())]
    rows = setup.plan.removal.coalitions * setup.plan.states
    runs = []
    with progress(len(references) * rows, "auditing", "row") as bar:
        for reference in references:
            run = Run(replace(setup, reference=setup.make_reference(reference)))
            run.take(removal_steps(setup.plan, run.rows_per_step), bar)
            runs.append(run)
    evaluator.check_still_same()
    figures = [run.summary.removal().R for run in runs]
    costs = runs[0].costs
    for run in runs[1:]:
        costs = {name: cost + run.costs[name] for name, cost in costs.items()}
    return CrossAudit(
        methods=tuple(setup.methods),
        references=("white noise", *setup.methods),
        R=torch.stack([figure.value for figure in figures]),
        errors=torch.stack([figure.error for figure in figures]),
        record=make_record(setup, costs, setup.notes()),
    )


def _describe_reference(reference: Absence | str | float) -> str:
    """Return the reference in words."""
    if isinstance(reference, str) and reference == "noise":
        return "white noise"
    if isinstance(reference, str | int | float):
        return str(reference)
    return describe_absence(reference)


def _read_samples(
    model: Any,
    x: Table,
    y: Classes,
    players: Any,
    readout: Any,
    class_names: Any,
    categorical: Categorical,
    limit: TimeLimit | None = None,
) -> Evaluator:
    """Return the evaluator; raise an error for absences in the place of classes."""
    first = y[0] if isinstance(y, list | tuple) and y else y
    if isinstance(first, Mapping | Absence):
        raise AbsentiaError("Absences were passed in the place of y, the classes. Write audit(model, x, absences=…).")
    task = Task(
        model, x, y, players=players, readout=readout, class_names=class_names, categorical=categorical, limit=limit
    )
    return Evaluator(task)
