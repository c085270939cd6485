"""Tests of looking into a model: errors go the shorter way round; a circle is seen where there is one, not in noise."""

import numpy as np
import pytest

import auxmod
from auxmod.experiments.inspection import circle_of_table, inspect
from tiny import SETTINGS


@pytest.mark.parametrize(("q", "frequency"), [(31, 5), (12, 1)])
def test_a_circle_is_found_in_its_order(q: int, frequency: int) -> None:
    turn = 2 * np.pi * frequency * np.arange(q) / q
    plane = np.random.default_rng(0).normal(size=(2, 16))
    seen = circle_of_table(np.cos(turn)[:, None] * plane[0] + np.sin(turn)[:, None] * plane[1] + 3.0)
    assert seen["frequency"] == frequency
    assert seen["shares"][frequency - 1] == pytest.approx(1)
    assert sum(seen["explained"]) == pytest.approx(1)
    assert seen["order"] > 0.9
    assert seen["shuffled"][0] < 0.9
    assert seen["phase"] == pytest.approx((frequency * np.arange(q) % q / q).tolist())


def test_noise_has_no_circle() -> None:
    """Even though the strongest frequency is chosen from the same noise."""
    random = np.random.default_rng(1)
    seen = [circle_of_table(random.normal(size=(97, 256))) for _ in range(5)]
    assert all(abs(each["order"]) < 0.5 for each in seen)
    assert all(abs(each["order"] - each["shuffled"][0]) < 4 * each["shuffled"][1] for each in seen)
    few = [circle_of_table(random.normal(size=(7, 16))) for _ in range(40)]
    assert np.mean([each["order"] for each in few]) > 0.5  # so a high order proves nothing by itself
    assert np.mean([each["shuffled"][0] for each in few]) == pytest.approx(0.59, abs=0.05)
    assert all(max(each["shares"]) < 3 / 48 for each in seen)
    assert all(sum(each["shares"]) == pytest.approx(1) for each in seen)


def test_a_table_of_one_column_lies_on_a_line() -> None:
    seen = circle_of_table(np.arange(7.0)[:, None])
    assert np.array(seen["pca"]).shape == (7, 2)
    assert seen["explained"] == pytest.approx([1, 0])


@pytest.mark.parametrize("embedding", ["angular", "token"])
@pytest.mark.parametrize("method", ["aux", "auto"])
def test_a_models_answers_are_beside_the_truth(embedding: str, method: str) -> None:
    model = auxmod.train(**SETTINGS, embedding=embedding, method=method)
    seen = inspect(model, 200)
    truth, error = np.array(seen["truth"]), np.array(seen["error"])
    assert len(truth) == len(error) == sum(seen["counts"]) == 200
    assert np.abs(error).max() <= 3.5
    right = np.round(truth + error) % 7 == truth
    assert right.mean() == pytest.approx(model.evaluate(200)["match"])
    assert ("table" in seen, "plane" in seen) == (embedding == "token", embedding == "angular" or method == "auto")
    if "plane" in seen and method == "aux":  # auto reads its answer from several points
        points = np.array(seen["plane"]["points"])
        answers = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) * 7 % 7
        assert answers == pytest.approx((truth + error) % 7, abs=1e-4)
