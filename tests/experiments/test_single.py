"""Tests of a single run: stopped anywhere, it resumes to the same files; whatever goes wrong, nothing is lost."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import auxmod
from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments import catalogue
from auxmod.experiments.catalogue import read_run
from auxmod.experiments.resolving import load_data, resolved, with_digest
from auxmod.experiments.run_directory import Run
from auxmod.experiments.single import DivergedError, Interrupted, create_run, train_run
from auxmod.learning import memory
from auxmod.learning.engine import Ensemble, Finished, Progress
from auxmod.problem import sampling
from auxmod.problem.rows import read_npz
from auxmod.settings import build, flatten
from tiny import SETTINGS, flags, tiny

CPU = torch.device("cpu")
SAME = ("model.safetensors", "state.safetensors", "result.json", "metrics.jsonl", "config.json")
"""The files that must not depend on where a run was stopped."""


OWN = {name: value for name, value in SETTINGS.items() if name != "samples"}
"""Settings for runs on one's own data, which bring their number of samples."""


def complete(run: Run, **options: Any) -> dict[str, bytes]:
    for _ in train_run(run, CPU, **options):
        pass
    return {name: (run.path / name).read_bytes() for name in SAME}


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return tiny(dropout=0.1, k=3, r=0.4)


@pytest.fixture(scope="module")
def uninterrupted(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return complete(Run.create(tmp_path_factory.mktemp("whole") / "run", config))


@pytest.mark.parametrize(
    ("after", "checkpoint_every"), [(0, 4), (1, 1), (1, 4), (5, 4), (5, 100), (17, 1), (18, 4), (18, 100), (19, 4)]
)
def test_killed_after_any_event_it_goes_on_to_the_same_files(
    tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes], after: int, checkpoint_every: int
) -> None:
    run = create_run(tmp_path / "run", config, CPU)
    events = train_run(run, CPU, checkpoint_every=checkpoint_every)
    for _ in range(after):
        next(events)
    events.close()  # nothing more is written: as good as a kill
    again = complete(Run.open(run.path), resume=True, checkpoint_every=checkpoint_every)
    assert again == uninterrupted


def test_killed_many_times_it_still_ends_the_same(
    tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes]
) -> None:
    run = Run.create(tmp_path / "run", config)
    for _ in range(6):
        events = train_run(run, CPU, resume=True, checkpoint_every=3)
        for _, _ in zip(range(4), events, strict=False):
            pass
        events.close()
    assert complete(run, resume=True) == uninterrupted


@pytest.mark.parametrize("after", [1, 9, 17])
def test_asked_to_stop_it_saves_and_goes_on(
    tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes], after: int
) -> None:
    run = Run.create(tmp_path / "run", config)
    seen: list[Any] = []
    with pytest.raises(Interrupted, match=f"Stopped at step {after} of 18. To go on: auxmod train --resume"):
        seen.extend(train_run(run, CPU, stopping=lambda: len(seen) >= after - 1))
    assert len(run.curve()) == after
    first = next(iter(train_run(Run.open(run.path), CPU, resume=True)))
    assert not isinstance(first, Progress) or first.step == after + 1  # nothing is done twice
    assert complete(Run.open(run.path), resume=True) == uninterrupted


def test_asked_to_stop_at_the_end_it_ends(tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes]) -> None:
    run = Run.create(tmp_path / "run", config)
    seen: list[Any] = []
    for event in train_run(run, CPU, stopping=lambda: len(seen) >= 17):
        seen.append(event)
    assert {name: (run.path / name).read_bytes() for name in SAME} == uninterrupted


def test_a_finished_run_leaves_all_its_files(tmp_path: Path, config: RunConfig) -> None:
    run = create_run(tmp_path / "run", config, CPU)
    complete(run)
    assert {path.name for path in run.path.iterdir()} == {*SAME, "provenance.json"}
    assert run.result is not None
    assert run.result["samples"] == 300
    assert [point["step"] for point in run.curve()] == list(range(1, 19))
    assert "accuracy" in run.curve()[-1]
    made = json.loads((run.path / "provenance.json").read_text())
    assert made["precision"] == "fp32"
    assert made["device"].startswith("cpu")


def test_asked_to_stop_at_any_moment_it_stops_only_where_it_has_saved(tmp_path: Path, config: RunConfig) -> None:
    """Ctrl-C comes between two checks for it."""
    run, asked = Run.create(tmp_path / "run", config), iter((False,))
    with pytest.raises(Interrupted, match=r"Stopped at step 2 of 18\. To go on: auxmod train --resume --out /"):
        complete(run, checkpoint_every=100, stopping=lambda: next(asked, True))
    first = next(train_run(run, CPU, resume=True))
    assert isinstance(first, Progress)
    assert first.step == 3


# -- what goes wrong ------------------------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: RunConfig
) -> None:
    from auxmod.learning.objective import Objective

    honest = Objective.losses

    def poisoned(self: Objective, outputs: Any, total: Any, index: Any, step: torch.Tensor) -> torch.Tensor:
        return honest(self, outputs, total, index, step) * (torch.nan if int(step) == 7 else 1)

    monkeypatch.setattr(Objective, "losses", poisoned)
    run = Run.create(tmp_path / "run", config)
    with pytest.raises(DivergedError) as caught:
        complete(run, checkpoint_every=3)
    assert "stopped being finite at step 8;" in str(caught.value)
    assert "the checkpoint of step 6 is kept" in str(caught.value)
    assert run.result is None
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    last = json.loads(lines[-1], parse_constant=_refuse)
    assert (last["step"], last["loss"]) == (8, None)
    monkeypatch.setattr(Objective, "losses", honest)
    kept = (run.path / "state.safetensors").read_bytes()
    events = train_run(run, CPU, resume=True)
    first = next(events)
    assert isinstance(first, Progress)
    assert first.step == 7
    assert (run.path / "state.safetensors").read_bytes() == kept
    assert read_run(run.path).state == "unfinished"  # since it resumes, it has not failed yet


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_a_run_that_cannot_start_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="tf32"):
        create_run(tmp_path / "run", tiny(precision="tf32"), CPU)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    with pytest.raises(UserError, match="GiB"):
        create_run(tmp_path / "run", tiny(), CPU)
    assert not (tmp_path / "run").exists()


# -- data of one's own ----------------------------------------------------------------------------------------


def save(path: Path, x: Any, **more: Any) -> Path:
    np.savez(path, x=x, **more)
    return path


def test_the_same_inputs_from_a_file_train_the_same_model(
    tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes]
) -> None:
    path = save(tmp_path / "data.npz", sampling.training(config, CPU).numpy())
    settings = {name: value for name, value in SETTINGS.items() if name != "samples"}
    own = resolved(settings | {"dropout": 0.1, "k": 3, "r": 0.4, "data": str(path)})
    assert own.training.samples == 60
    assert own.hash != config.hash
    files = complete(Run.create(tmp_path / "run", own))
    assert files["metrics.jsonl"] == uninterrupted["metrics.jsonl"]
    figures = [json.loads(f["result.json"]) for f in (files, uninterrupted)]
    assert figures[0].pop("sum") != figures[1].pop("sum")  # the checksum covers the run's hash too
    assert figures[0] == figures[1]
    header = len(files["model.safetensors"]) - len(uninterrupted["model.safetensors"])
    assert header == 0
    weights = [f["model.safetensors"].rpartition(b"}")[2] for f in (files, uninterrupted)]
    assert weights[0] == weights[1]


def test_a_run_is_named_by_what_is_in_its_file(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 7, (60, 4))
    settings = {name: value for name, value in SETTINGS.items() if name != "samples"}
    one = resolved(settings | {"data": str(save(tmp_path / "a.npz", rows))})
    moved = resolved(settings | {"data": str(save(tmp_path / "b.npz", rows.astype(np.int8)))})
    other = resolved(settings | {"data": str(save(tmp_path / "c.npz", rows[::-1]))})
    assert one.hash == moved.hash != other.hash
    (data,) = load_data([one])
    assert data is not None
    assert data.tolist() == rows.tolist()
    save(tmp_path / "a.npz", rows[::-1])
    with pytest.raises(UserError, match="its contents have changed"):
        load_data([one])


def test_a_configuration_that_only_names_a_file_is_trained_on_it(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", np.random.default_rng(0).integers(0, 7, (60, 4)))
    settings = {name: value for name, value in SETTINGS.items() if name != "samples"}
    settings |= {"data": str(path), "method": "aux"}
    named = build(**settings)
    assert named.training.data_sha256 == ""
    known = resolved(settings)
    assert auxmod.train(named).config == auxmod.build(**settings) == with_digest(with_digest(named)) == known


def test_more_rows_than_the_default_may_have_a_larger_batch(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", np.zeros((100_002, 1), dtype=np.int8))
    config = resolved({"n": 1, "q": 2, "data": str(path), "batch": 100_001})
    assert config.training.samples == 100_002


def test_a_model_that_answers_no_numbers_says_so_and_what_is_not_kept_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from auxmod.cli import main
    from auxmod.learning.objective import Objective

    model = auxmod.train(**SETTINGS)
    torch.nn.init.constant_(model.encoder.head.weight, torch.nan)
    model.save_pretrained(tmp_path / "nan")
    with pytest.raises(UserError, match="answer of the model is not a number"):
        model.predict([1, 2, 3, 4])
    assert main(["predict", str(tmp_path / "nan"), "1", "2", "3", "4"]) == 2
    assert main(["view", str(tmp_path / "nan"), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.count("did it diverge?") == 2
    honest = Objective.losses
    monkeypatch.setattr(Objective, "losses", lambda *given: honest(*given) * torch.nan)
    with pytest.raises(DivergedError, match=r"^The loss stopped being finite at step 1\. Try a smaller --lr") as caught:
        auxmod.train(**SETTINGS)
    again = pickle.loads(pickle.dumps(caught.value))  # as a pool of processes does
    assert (str(again), again.step) == (str(caught.value), 1)


@pytest.mark.parametrize("embedding", ["token", "angular"])
def test_a_sound_model_may_be_asked_often(embedding: str) -> None:
    """With tokens, the classes from q up to K·q are masked then."""
    model = auxmod.train(**SETTINGS, method="aux", embedding=embedding)
    assert 0 <= model.predict([1, 2, 3, 4], asks=3)[0] < 7


def test_a_data_file_is_read_once_for_all_cells_and_again_where_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from auxmod.experiments import resolving

    reads = []
    monkeypatch.setattr(resolving, "read_npz", lambda *given: reads.append(given) or read_npz(*given))
    given = {name: value for name, value in SETTINGS.items() if name != "samples"} | {"data": str(tmp_path / "x.npz")}
    found = []
    for size in (60, 70):
        np.savez(tmp_path / "x.npz", x=np.ones((size, 4), dtype=int))
        found.append([resolving.resolved(given | {"seed": seed, "method": "aux"}) for seed in range(5)])
    assert len(reads) == 2
    assert [{run.training.samples for run in runs} for runs in found] == [{60}, {70}]


def test_from_python_too_it_goes_on_to_the_same_files(
    tmp_path: Path, config: RunConfig, uninterrupted: dict[str, bytes]
) -> None:
    run = create_run(tmp_path / "run", config, CPU)
    events = train_run(run, CPU, checkpoint_every=3)
    for _ in range(7):
        next(events)
    events.close()
    for wrong, words in (({"lr": 1.0}, "leave out, also of the environment: lr"), ({"config": config}, "config")):
        with pytest.raises(UserError, match=words):
            auxmod.train(out=run.path, resume=True, **wrong)
    auxmod.train(out=run.path, resume=True)
    assert {name: (run.path / name).read_bytes() for name in SAME} == uninterrupted
    with pytest.raises(UserError, match="is a finished run"):
        auxmod.train(out=run.path, resume=True)
    with pytest.raises(UserError, match="--resume needs --out"):
        auxmod.train(resume=True)


def test_an_array_is_no_file_of_data() -> None:
    with pytest.raises(UserError, match=r"--data names a file, which numpy\.savez.* makes; this is a ndarray\."):
        auxmod.train(**OWN, data=np.zeros((60, 4), dtype=int))


def test_rows_that_do_not_fit_are_named_by_their_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "wide.npz", x=np.zeros((60, 5), dtype=int))
    with pytest.raises(UserError, match=r"wide\.npz: Each row must have 4 numbers"):
        auxmod.train(**OWN, data=tmp_path / "wide.npz")


def test_rows_of_ones_own_are_what_a_run_is_measured_on(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).integers(0, 2, (50, 4))
    path = save(tmp_path / "test.npz", rows)
    run = Run.create(tmp_path / "run", resolved(SETTINGS | {"method": "aux", "test_data": str(path), "asks": 2}))
    complete(run)
    model, result = auxmod.load(run.path), run.result
    assert result is not None
    measured = model.evaluate(x=np.delete(rows, np.s_[::10], 0))
    assert {name: result[name] for name in measured} == measured
    assert (measured["samples"], result["asked"]["samples"]) == (45, 45)
    last = run.curve()[-1]
    assert last["accuracy"] == model.evaluate(x=rows[::10])["match"]
    assert run.config.hash != tiny(method="aux").hash
    moved = path.rename(tmp_path / "moved.npz")
    assert resolved(SETTINGS | {"method": "aux", "test_data": moved, "asks": 2}).hash == run.config.hash


def test_few_rows_to_measure_on_are_refused_and_many_are_measured_in_part(tmp_path: Path) -> None:
    one = save(tmp_path / "one.npz", np.zeros((1, 4), dtype=int))
    with pytest.raises(UserError, match=r"one\.npz has 1 row, but --test-data needs two or more"):
        resolved(SETTINGS | {"test_data": one})
    many = save(tmp_path / "many.npz", np.random.default_rng(0).integers(0, 7, (900, 4)))
    model = tmp_path / "model"
    auxmod.train(**SETTINGS | {"method": "aux", "test_data": many}, out=model)
    assert (Run.open(model).result or {})["samples"] == SETTINGS["test_samples"]


# -- models on their way, and whoever watches ----------------------------------------------------------------


@pytest.mark.parametrize("killed_after", [None, 1, 8, 11])
def test_models_are_kept_on_their_way(tmp_path: Path, config: RunConfig, killed_after: int | None) -> None:
    run = create_run(tmp_path / "run", config, CPU)
    if killed_after is not None:
        events = train_run(run, CPU, checkpoint_every=4, keep_every=5)
        for _ in range(killed_after):
            next(events)
        events.close()
    complete(run, resume=killed_after is not None, checkpoint_every=4, keep_every=5)
    assert sorted(int(path.name) for path in (run.path / "steps").iterdir()) == [0, 5, 10, 15]
    ensemble = Ensemble([config], CPU)
    models = {0: {name: p[0].clone() for name, p in ensemble.encoder.named_parameters()}}
    for event in ensemble.fit():
        if isinstance(event, Progress):
            models[event.step] = {name: p[0].clone() for name, p in ensemble.encoder.named_parameters()}
    for step in (0, 5, 10, 15):
        model = auxmod.load(run.path / "steps" / str(step))
        assert model.config == config
        for name, p in model.encoder.named_parameters():
            assert torch.equal(p[0], models[step][name])


def test_a_store_lists_a_run_and_not_the_models_on_its_way(tmp_path: Path) -> None:
    auxmod.train(tiny(), out=tmp_path / "run", keep_every=6)
    entries, notes = catalogue.find(tmp_path)
    assert ([entry.path for entry in entries], notes) == ([tmp_path / "run"], [])
    (entry,), _ = catalogue.find(tmp_path / "run" / "steps" / "6")
    assert entry.state == "model"
    auxmod.train(tiny(seed=1), out=tmp_path / "run" / "nested")
    assert len(catalogue.find(tmp_path)[0]) == 2, "a run in another's directory is one of its own"
    auxmod.train(tiny(seed=2), out=tmp_path / "steps" / "third")
    assert len(catalogue.find(tmp_path)[0]) == 3, "steps is a name like any other where it lies in no run"


def test_a_run_goes_with_the_models_it_has_kept_and_with_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from auxmod.cli import main

    run = tmp_path / "run"
    assert main(["train", *flags("--keep-every", "6", "--out", str(run), "--quiet")]) == 0
    note = run / "steps" / "6" / "notes.txt"
    note.write_text("mine")
    assert main(["runs", "rm", str(run), "--yes"]) == 2
    assert "holds more than a run (steps)" in capsys.readouterr().err
    note.unlink()
    assert main(["runs", "rm", str(run), "--yes"]) == 0
    assert not run.exists()
    assert main(["train", *flags("--keep-every", "0", "--out", str(run))]) == 2
    assert "--keep-every is 0, but must be 1 step or more." in capsys.readouterr().err


def test_it_is_told_how_to_go_on_keeping_models(tmp_path: Path, config: RunConfig) -> None:
    run = create_run(tmp_path / "run", config, CPU)
    with pytest.raises(Interrupted, match=r"--out \S+/run --keep-every 5\."):
        list(train_run(run, CPU, keep_every=5, stopping=lambda: True))
    torn = run.path / "steps" / "5" / ".model.safetensors.abcd1234"
    torn.parent.mkdir(parents=True)
    torn.write_text("half a model, that a kill left")
    complete(run, resume=True, keep_every=5)
    assert not torn.exists()


def test_settings_that_name_no_data_are_settings() -> None:
    assert auxmod.build(**flatten(tiny())) == tiny()


def test_whoever_asks_is_told_how_it_goes(tmp_path: Path) -> None:
    heard: list[Any] = []
    auxmod.train(tiny(), tell=heard.append)
    assert [type(event) for event in heard] == [Progress] * 18 + [Finished]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (["demo"], {}, "takes a RunConfig, or settings by name"),
        ([{"n": 4}], {}, "a preset is preset='demo'"),
        ([], {"keep_every": 0, "out": "x"}, "keep_every is 0, but must be a whole number of steps"),
        ([], {"keep_every": 5}, "keep_every needs out"),
        ([], {"tell": None}, "tell is None, but must be a function, such as print"),
        ([], {"moduli": np.array([1, 2])}, r"--moduli is array\(\[1, 2\]\); give a list such as 1,2,4"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: list[Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        auxmod.train(*arguments, **options)


def test_a_device_may_be_one_of_torchs() -> None:
    assert auxmod.train(tiny(), device=torch.device("cpu")).encoder.head.weight.device == CPU


def test_a_run_is_built_as_it_is_trained() -> None:
    assert auxmod.build().method.method == "auto"
    assert auxmod.build("demo", method="sparse") == resolved({"method": "sparse"}, "demo")
    assert auxmod.build(preset="demo", k=3).method.moduli == (1, 3)
