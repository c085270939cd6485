"""Tests of the playground's answers: they are the model's own, and come with the true sum."""

import http.client
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auxmod
from auxmod.errors import UserError
from auxmod.serving.answers import Answers
from auxmod.serving.server import Server
from tiny import tiny

X = [6, 5, 4, 3]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An angular and a token model."""
    place = tmp_path_factory.mktemp("runs")
    auxmod.train(tiny(method="aux", k=3, r=0.4), out=place / "angular")
    auxmod.train(tiny(method="aux", k=3, r=0.4, embedding="token"), out=place / "token")
    return place


@pytest.mark.parametrize("kind", ["angular", "token"])
def test_it_answers_as_predict_does(kind: str, runs: Path) -> None:
    answer, model = Answers().ask(runs / kind, X), auxmod.load(runs / kind)
    assert answer["prediction"] == model.predict([X])[0]
    assert answer["value"] == model.values([X])[0]
    assert (answer["truth"], answer["sum"], answer["wraps"]) == (18 % 7, 18, 2)
    assert 0 <= answer["error"] <= 3.5
    x, y = answer["circles"][0]["point"]
    assert math.atan2(y, x) % (2 * math.pi) * 7 / (2 * math.pi) == pytest.approx(answer["value"], abs=1e-5)


def test_an_angular_model_has_a_circle_for_each_modulus(runs: Path) -> None:
    circles = Answers().ask(runs / "angular", X)["circles"]
    assert [(each["label"], each["truth"]) for each in circles] == [("mod 7", 4 / 7), ("mod 21", 18 / 21)]


def test_a_token_model_shows_its_likeliest_classes(runs: Path) -> None:
    answer = Answers().ask(runs / "token", X)
    shares = [each["share"] for each in answer["classes"]]
    assert answer["classes"][0]["class"] == answer["prediction"]
    assert len(shares) == 5
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) < 1


def test_what_the_model_cannot_answer_is_a_sentence(runs: Path) -> None:
    for x, said in (([1], "must have 4 numbers"), ([7, 0, 0, 0], r"lie in 0\.\.6"), ([2**70] * 4, r"lie in 0\.\.6")):
        with pytest.raises(UserError, match=said):
            Answers().ask(runs / "angular", x)


def test_a_new_checkpoint_is_loaded_and_few_are_kept(runs: Path, tmp_path: Path) -> None:
    answers, place = Answers(), tmp_path / "model"
    auxmod.load(runs / "angular").save_pretrained(place)
    first = answers.ask(place, X)["value"]
    assert answers.ask(place, X)["value"] == first
    auxmod.train(tiny(method="aux", k=3, r=0.4, seed=5)).save_pretrained(place)
    assert answers.ask(place, X)["value"] != first
    for number in range(6):
        auxmod.load(runs / "angular").save_pretrained(tmp_path / str(number))
        answers.ask(tmp_path / str(number), X)
    assert answers._load.cache_info().currsize == 4
    (place / "model.safetensors").unlink()
    with pytest.raises(UserError, match="no checkpoint"):
        answers.ask(place, X)


def test_the_server_answers_and_refuses_in_sentences(runs: Path, serve: Callable[..., Server]) -> None:
    server = serve(runs)
    ids = {item.row["name"]: id for id, item in server.library.items.items()}

    def ask(x: list[int]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        body = json.dumps({"run": ids["token"], "x": x})
        connection.request("POST", "/api/answer", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    assert ask(X) == (200, Answers().ask(runs / "token", X))
    assert ask([1, 2]) == (422, {"error": "Each row must have 4 numbers; these have shape 1×2."})
