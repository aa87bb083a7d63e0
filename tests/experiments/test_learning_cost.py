"""The cost of learning is compared with the paper's where the loss is the paper's."""

from experiments.learning_cost import judge_images, judge_tables

TABLE = {"seconds of an epoch": 20.0, "seconds of ours": 2.0, "loss of ours": 1.0, "loss of the schedule": 1.1}
IMAGES = {"seconds of the schedule": 1e6, "seconds of ours": 60.0, "loss before": 3.0, "loss of ours": 2.0}


def test_tables_are_judged_by_time_and_loss():
    assert judge_tables({"census": TABLE}).word == "by another method"
    assert judge_tables({"census": TABLE | {"loss of ours": 1.2}}).word == "no"
    assert judge_tables({"census": TABLE | {"seconds of ours": 1e5}}).word == "no"


def test_images_are_not_compared_because_their_loss_is_another():
    found = judge_images({"census": TABLE, "mnist": IMAGES})
    assert found.word == "untestable"
    assert found.ours == "mnist 60 s by L_marginal"
    assert judge_tables({"census": TABLE, "mnist": IMAGES | {"seconds of ours": 1e9}}).word == "by another method"
    assert judge_tables({"mnist": IMAGES}).word == "not measured"
