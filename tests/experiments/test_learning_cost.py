"""The cost of learning is compared with the paper's where the loss is the paper's."""

from experiments.learning_cost import judge

TABLE = {"seconds of an epoch": 20.0, "seconds of ours": 2.0, "loss of ours": 1.0, "loss of the schedule": 1.1}
IMAGES = {"seconds of the schedule": 1e6, "seconds of ours": 60.0, "loss before": 3.0, "loss of ours": 2.0}


def test_tables_are_judged_by_time_and_loss():
    assert judge({"census": TABLE}).word == "by another method"
    assert judge({"census": TABLE | {"loss of ours": 1.2}}).word == "no"
    assert judge({"census": TABLE | {"seconds of ours": 1e5}}).word == "no"


def test_images_are_not_compared_because_their_loss_is_another():
    found = judge({"census": TABLE, "mnist": IMAGES})
    assert "mnist 60 s by another loss (the paper 2.5 h; not comparable)" in found.ours
    assert "nothing can be compared" in found.reason
    assert judge({"census": TABLE, "mnist": IMAGES | {"seconds of ours": 1e9}}).word == "by another method"
    assert judge({"mnist": IMAGES}).word == "not measured"
