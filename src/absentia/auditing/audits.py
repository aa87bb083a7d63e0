"""The public functions of the audit: `audit` and `cross_audit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from absentia.models.encoded_inputs import encode_inputs
from absentia.players import Players
from absentia.readouts import Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions


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
    """Measure how much absences leak and invent and how many interactions they need, and recommend one of them.

    All absences are measured on the same samples and coalitions:

    1. *Leak* is what fully masked samples still reveal about their class. *Invention* is what the stand-ins claim by
       themselves. Both are parts of the log-loss of fully masked samples. To separate them, the predictions are
       recalibrated with a scale and class offsets, and scored on samples that were not used for the fit. The leak is
       the log-loss of the class frequencies minus that of the recalibrated predictions. The invention is the log-loss
       of the original predictions minus that of the recalibrated ones. For readouts other than log-odds, the squared
       difference from v(N), as a share of its variance, takes the place of the log-loss.
    2. *Score* is the same loss, averaged over coalitions of all sizes (the masking curve).
    3. *Length* is the number of interactions that reconstruct all values of a sample's game to within 5 %. It is a
       geometric mean over samples.
    4. *Distance* compares masked samples with the data. *R* is the paper's measure,
       E_x[(Σ|U′| − Σ|U_noise|) / Σ|U|] [ren2023faithful]. It compares the effects of samples whose ``region`` is
       masked, replaced by noise, or left unchanged. A ``reference`` stands in for absent players.

    The recommendation is *honest first, then short*:

    1. Absences are ruled out if their leak exceeds both its error and 5 % of the prior's score, or if their invention
       exceeds both its error and all there is to know, which is log(classes) or the variance. The prior predicts the
       class frequencies, or the mean. Surrogates are never recommended, because they explain another model.
    2. Of the others, those with about the best score are kept. Scores may differ by 10 % of the prior's score, but by
       no more than a third of the improvement of whole samples over the prior.
    3. Of these, the shortest is recommended. Lengths within a factor of 1.25 are considered equal. Such ties go to
       the absence closest to the data, and then, among absences as close as the data's own rows, to the best score.

    This rule is applied to resamples of half of the samples and draws. The absence that wins most often is
    recommended, and ``confidence`` is the share of the resamples that it wins.

    If some entries are always present, what they reveal does not count as a leak. Random absences use the same draws
    as in `explain`, and the errors include the variance of the draws.

    Parameters
    ----------
    model, x, y, players, readout, class_names
        The model on a batch of samples: see `MaskedModel`. At most 500 samples are audited. They are drawn at random.
        Without ``y``, the classes are those that the model predicts for whole samples.
    absences : mapping, or sequence of words, numbers or absences, optional
        The absences to audit, with or without names. The default is the usual absences for this kind of data.
    region : sequence of str or int, optional
        The names or numbers of the players to mask for R. The default is all players.
    reference : Absence, str or float, default "noise"
        What stands in for absent players in R. "noise" is white noise in the range of ``data``, drawn separately for
        each sample and draw.
    draws : int, default 5
        The number of draws of the noise in R, and the maximum number of draws of each absence in R.
    data : Tensor, array or DataFrame, optional
        Rows such as the training data. They set the range of white noise, and absences given by words are made from
        them. The default is ``x``.
    tau : float, optional
        The size above which an effect is salient. The default is 5 % of a sample's largest effect.
    max_players : int, default 16
        With more players than this, games of at most 12 of them are audited, drawn separately for each sample and
        draw.
    categorical : sequence, optional
        Categorical columns that the players do not know about, as in `learn_baseline`. White noise takes the values
        of these columns from random rows of ``data``.
    evaluations : int, optional
        The total number of rows that the model may evaluate. The default depends on the size of the model, and takes
        up to a minute on two cores. If all coalitions need more rows than that, the audit first uses fewer samples,
        and then games of fewer players. If the rows would take several minutes, as many are evaluated as fit a
        minute, and a note in the record says which number repeats the result.
    seconds : float, optional
        A time limit, checked before each batch of the model. When it is reached, or when Ctrl-C is pressed, the audit
        returns what it has measured so far. With ``math.inf`` the default rows are evaluated, however long they take.
    seed : int, default 0
        The seed of all random draws.

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
        _check_classes(y)
        options = TaskOptions(y, players, readout, class_names, categorical)
        encoded = encode_inputs(model, x, data, _members(absences), players)
        evaluator = Evaluator(Task.of_inputs(TaskInputs.read(encoded), options, limit))
        check_settings(draws, max_players)
        subject = Subject.of(evaluator, region, encoded.data, seed)
        has_no_limit = evaluations is None and seconds is None
        setup = Setup.of(subject, absences, draws, max_players, evaluations, by_time=has_no_limit)
        setup = replace(setup, reference=setup.make_reference(reference), tau=tau)
    except OutOfTime as error:
        raise limit.too_short(len(x), NO_TIME) from error
    run = Run(setup)
    stop = run.work()
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
        stop=stop,
    )
    return Audit(
        methods=tuple(setup.methods),
        players=evaluator.task.names,
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
    """Measure how R depends on its reference, with white noise and every absence as the reference in turn.

    Parameters
    ----------
    model, x, y, absences, players, readout, region, draws, data, max_players, categorical, class_names, seed
        See `audit`. Absences that bring their own model raise an error.

    Examples
    --------
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> bool(found.R[1, 0] <= 0)
    True
    """
    _check_classes(y)
    options = TaskOptions(y, players, readout, class_names, categorical)
    encoded = encode_inputs(model, x, data, _members(absences), players)
    evaluator = Evaluator(Task.of_inputs(TaskInputs.read(encoded), options))
    check_settings(draws, max_players)
    setup = Setup.of(Subject.of(evaluator, region, encoded.data, seed), absences, draws, max_players)
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


def _members(absences: Any) -> list[Any]:
    """Return the absences without their names; none for the usual ones, and for what is refused later."""
    if isinstance(absences, Mapping):
        return list(absences.values())
    if isinstance(absences, Sequence):
        return list(absences)
    return []


def _check_classes(y: Classes) -> None:
    """Raise an error if absences were passed in place of classes."""
    first = y[0] if isinstance(y, list | tuple) and y else y
    if isinstance(first, Mapping | Absence):
        raise AbsentiaError("Absences were passed in place of y, the classes. Write audit(model, x, absences=…).")
