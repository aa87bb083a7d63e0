"""Why a run stopped is a value: views word it, and nothing reads the words again."""

import json
from dataclasses import replace

import pytest
import torch
import typer

import absentia as ab
from absentia.cli import commands
from absentia.cli.payloads import record_payload
from absentia.learning.checkpoint import SearchState
from absentia.learning.search_ends import EndKind, SearchEnd
from absentia.runtime.limits import OutOfTime
from absentia.runtime.stops import INTERRUPTED, Stop, StopReason
from absentia.storage.codec import Unpacker
from absentia.storage.old_words import search_end_from_words, stop_from_words

X = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()


def model(rows):
    return (rows - 0.25).prod(1)


def learn(callback=None, **settings):
    options = ab.LearningOptions(steps=6, rows_per_step=64, callback=callback)
    return ab.learn_baseline(model, X, options=options, **settings)


def interrupt(_step):
    raise KeyboardInterrupt("a message; of its own")


def test_ctrl_c_is_a_typed_stop_of_learning(tmp_path):
    learned = learn(interrupt)
    assert learned.record.end == SearchEnd(EndKind.CUT_IN_STEPS, INTERRUPTED, steps=1, planned=6)
    assert learned.record.end.is_interruption
    assert learned.record.stopped == "interrupted after 1 of 6 steps; these are the best values so far"
    learned.save(tmp_path / "saved")
    assert ab.load(tmp_path / "saved").record == learned.record


def test_a_callback_ends_learning_but_does_not_interrupt_it():
    end = learn(lambda step: step.step == 2).record.end
    assert (end.stop, end.steps) == (Stop(StopReason.CALLBACK), 2)
    assert not end.is_interruption
    assert end.stop.by_user


def test_a_time_limit_that_is_reached_at_once_is_a_typed_stop():
    record = learn(seconds=1e-6).record
    assert record.end == SearchEnd(EndKind.CUT_BEFORE_START, Stop(StopReason.TIME_LIMIT, 1e-6))
    assert not record.end.stop.by_user


def test_a_finished_search_has_no_stop():
    end = learn().record.end
    assert (end.kind, end.stop, end.steps) == (EndKind.STEPS_DONE, None, 6)
    assert str(end) == f"6 steps of {end.rows} rows are done"


def test_the_end_of_a_command_depends_on_the_value_not_on_words():
    worded = SearchEnd(EndKind.WORDED, words="interrupted by nobody")
    commands.exit_if_interrupted(worded.is_interruption)
    with pytest.raises(typer.Exit) as stop:
        commands.exit_if_interrupted(SearchEnd(EndKind.CUT_IN_SEARCH, INTERRUPTED).is_interruption)
    assert stop.value.exit_code == commands.INTERRUPTED


def test_an_audit_that_was_interrupted_has_a_typed_stop():
    found = ab.audit(model, X[:8], absences={"zero": 0.0, "half": 0.5})
    assert found.record.stop is None
    assert found.record.stopped == ""
    assert not found.record.is_interrupted
    cut = replace(found.record, stop=INTERRUPTED)
    assert cut.is_interrupted
    assert cut.stopped == "interrupted"
    assert replace(found.record, stop=Stop(StopReason.TIME_LIMIT, 9.0)).stopped == "time limit of 9 s"


def test_an_audit_saves_its_stop(tmp_path):
    found = ab.audit(model, X[:8], absences={"zero": 0.0, "half": 0.5})
    stopped = replace(found, record=replace(found.record, stop=Stop(StopReason.TIME_LIMIT, 2.5)))
    stopped.save(tmp_path / "saved")
    assert ab.load(tmp_path / "saved").record == stopped.record


def test_json_words_values_under_the_names_that_it_had():
    learned = learn()
    payload = json.loads(json.dumps(record_payload(learned.record)))
    assert payload["stopped"] == learned.record.stopped
    assert payload["readout"] == "the output as it is"
    assert not {"end", "readout_note"} & set(payload)


@pytest.mark.parametrize("limit", [OutOfTime(1.5)])
def test_the_exception_of_a_time_limit_knows_its_seconds(limit):
    assert limit.seconds == 1.5
    assert str(limit) == "the limit of 1.5 s is reached"


@pytest.mark.parametrize(
    ("words", "stop"),
    [
        ("interrupted", Stop(StopReason.INTERRUPTED)),
        ("interrupted after 7 of 12 steps; these are the best values so far", Stop(StopReason.INTERRUPTED)),
        ("the callback returned True after 5 of 12 steps", Stop(StopReason.CALLBACK)),
        ("the limit of 1.5 s is reached after 3 of 12 steps", Stop(StopReason.TIME_LIMIT, 1.5)),
        ("time limit of 9 s", Stop(StopReason.TIME_LIMIT, 9.0)),
        ("120 steps of 1,024 rows are done", None),
        ("", None),
    ],
)
def test_stops_of_files_before_0_2_are_decoded(words, stop):
    fields = stop_from_words(words)
    assert Unpacker({}, {}).unpack(Stop, fields) == stop
    assert search_end_from_words(words)["words"] == words


def test_checkpoints_hold_the_end_and_old_ones_are_read():
    state = SearchState(unfinished=SearchEnd(EndKind.SWEEPS_DONE, sweeps=4))
    tensors = state.tensors()
    assert SearchState.from_file(tensors, json.loads(json.dumps(state.header()))).unfinished == state.unfinished
    old = {"evaluations": 3, "unfinished": ""}
    assert SearchState.from_file(tensors, old).unfinished is None
    words = "4 sweeps are done, and the last still lowered the loss"
    assert str(SearchState.from_file(tensors, old | {"unfinished": words}).unfinished) == words
