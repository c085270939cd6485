"""Tests of wrong use: one clear sentence on stderr, exit code 2, and nothing written, overwritten or lost."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import auxmod
from auxmod.cli import main
from auxmod.files import write_json
from auxmod.learning import memory
from tiny import flags, tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    auxmod.train(tiny(), out=path)
    return path


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Path) -> Path:
    """A working directory with runs (finished, unfinished, foreign, damaged), a saved model, and other files."""
    monkeypatch.chdir(tmp_path)
    for name in ("done", "unfinished", "foreign", "damaged"):
        Path(name).mkdir()
        for file in trained.iterdir():
            Path(name, file.name).write_bytes(file.read_bytes())
    for name in ("unfinished", "foreign"):
        Path(name, "result.json").unlink()
    Path("taken.png").write_bytes(b"mine")
    Path("pictures").mkdir()
    Path("pictures/rho-n4-q7.png").write_bytes(b"mine")
    Path("pretrained").mkdir()
    for name in ("config.json", "model.safetensors"):
        Path("pretrained", name).write_bytes((trained / name).read_bytes())
    write_json(Path("foreign/config.json"), tiny().to_dict() | {"format": 7})
    Path("damaged/model.safetensors").write_bytes(b"junk")
    Path("empty").mkdir()
    np.savez("good.npz", x=np.zeros((60, 4), dtype=int))
    np.save("rows.npy", np.zeros((60, 4), dtype=int))
    np.savez("outside.npz", x=np.full((60, 4), 7))
    np.savez("short.npz", x=np.zeros((60, 3), dtype=int))
    np.savez("few.npz", x=np.zeros((5, 4), dtype=int))
    np.savez("wrong_y.npz", x=np.zeros((60, 4), dtype=int), y=np.ones(60))
    np.savez("no_x.npz", z=np.zeros(3))
    Path("broken.npz").write_bytes(b"PK\x03\x04 not really")
    Path("rows.csv").write_text("1,2,3\n")
    Path("words.csv").write_text("one,two,three,four\n")
    Path("bad.toml").write_text("n = \n")
    Path("unknown.toml").write_text("n = 4\ncolour = 'red'\n")
    Path("odd.toml").write_text("r = 'half'\n")
    Path("part.toml").write_text("[colours]\nn = 4\n")
    Path("deep.toml").write_text("r = " + 5000 * "[")
    return tmp_path


def train(*others: str, out: str = "new") -> list[str]:
    return ["train", *flags("--out", out, *others)]


WRONG: list[tuple[list[str], str]] = [
    (["train", "--data", "", "--n", "4"], "--data is empty: name a file, or leave it out and inputs are drawn."),
    # the problem, the method
    (train("--q", "1"), "--q is 1, but a modulus is at least 2"),
    (train("--n", "0"), "--n is 0, but a sum needs at least one term"),
    (train("--k", "1"), "--k is 1, but the auxiliary modulus K·q needs"),
    (train("--r", "0"), "--r is 0.0, but is a probability strictly between 0 and 1"),
    (train("--r", "1"), "--r is 1.0, but is a probability strictly between 0 and 1"),
    (train("--r", "-0.5"), "--r is -0.5"),
    (train("--r", "nan"), "--r is nan"),
    (train("--moduli", "1,2,4", "--weights", "0.5,0.25,0.5"), "sums to 1.25; make it sum to 1"),
    (train("--moduli", "1,2,4", "--weights", "0.5,0.5"), "--weights has 2 values for 3 moduli"),
    (train("--moduli", "2,4"), "the first must be 1"),
    (train("--moduli", "1,x"), "--moduli is '1,x', but must be numbers"),
    (train("--moduli", "1,2.5"), "--moduli is '1,2.5', but must be whole numbers"),
    (train("--moduli", "2,1000003"), "--moduli is 2,1000003, but the first must be 1"),
    (train("--method", "naive", "--moduli", "1,2"), "--method naive trains on q alone: leave out --moduli"),
    (train("--method", "naive", "--k", "4"), "--k and --r belong to --method aux"),
    (train("--method", "magic"), 'Invalid value "magic" for --method'),
    (train("--embedding", "token", "--alpha", "0.1"), "--alpha are about points on a circle"),
    # the model, the training
    (train("--heads", "3"), "--width 8 does not divide into --heads 3"),
    (train("--init", "big"), "--init is 'big'"),
    (train("--batch", "1000"), "--batch 1000 is larger than --samples 60"),
    (train("--lr", "-1"), "--lr is -1"),
    (train("--n", "four"), "Invalid value for --n: 'four' is not a whole number"),
    (train("--n", "4.7"), "'4.7' is not a whole number"),
    (train("--epochs", "1e1"), "'1e1' is not a whole number"),
    (train("--checkpoint-every", "0"), "--checkpoint-every is 0"),
    # data
    (train("--data", "good.npz", "--samples", "60"), "--data brings its own: give one of them"),
    (train("--data", "outside.npz"), "The inputs must lie in 0..6; found 7"),
    (train("--data", "short.npz"), "Each row must have 4 numbers; these have shape 60×3"),
    (train("--data", "few.npz"), "--batch 10 is larger than --samples 5"),
    (train("--data", "wrong_y.npz"), "y is not the sum of x mod 7 in 60 of its rows"),
    (train("--data", "no_x.npz"), "has no array x; it has: z"),
    (train("--data", "broken.npz"), "cannot be read as an .npz file"),
    (train("--data", "rows.csv"), "cannot be read as an .npz file"),
    (train("--data", "none.npz"), "There is no file"),
    # places
    (train(out="done"), "done exists already: choose another --out, or add --resume"),
    (train(out="empty"), "empty exists already, and is not a run: choose another --out."),
    (train(out="rows.csv"), "rows.csv exists already, and is not a run: choose another --out."),
    (train(out="rows.csv/run"), "rows.csv/run cannot be written (Not a directory)"),
    (train(out="/proc/run"), "/proc/run cannot be written"),
    (["train", "--resume", "--out", "none"], "none is not a run: there is no such directory"),
    (["train", "--resume", "--out", "empty"], "empty is not a run: it has no config.json"),
    (["train", "--resume", "--out", "foreign"], "has format 7; this version of auxmod reads format 1"),
    (["train", "--resume", "--out", "done"], "done is a finished run: there is nothing to resume"),
    (
        ["train", "--resume", "--out", "unfinished", "--lr", "1"],
        "settings from unfinished; leave out, also of the environment: lr",
    ),
    (["train", "--resume", "--out", "unfinished", "--preset", "demo"], "also of the environment: preset"),
    (["train", "--resume", "--out", "pretrained"], "holds a model but no training state to go on from"),
    (["train", "--resume"], "--resume needs --out"),
    (["predict", "done", "1", "2", "3", "1.5"], "The inputs must be whole numbers; these are 1 2 3 1.5"),
    (["eval", "done", "--samples", "10.5"], "'10.5' is not a whole number"),
    (["theory", "--n", "3.5"], "'3.5' is not a whole number"),
    (["figure", "gap", "--out", "taken.png"], "taken.png exists already: choose another --out, or add --force"),
    (["theory", "--n", "4", "--q", "7", "--figures", "pictures"], "pictures/rho-n4-q7.png exist already"),
    (["demo", "--quick", "--out", "done"], "done exists already"),
    (["data", *flags("--out", "good.npz")], "good.npz exists already"),
    (["data", *flags("--out", "rows")], "must end in .npz"),
    (["data", *flags("--out", "rows.csv/d.npz")], "'rows.csv' is a file: choose another --out"),
    (["data", *flags("--data", "good.npz", "--out", "d.npz")], "leave it out"),
    (["data", *flags()], "--out requires an argument"),
    # devices, presets, files, flags
    (train("--device", "cuda"), "--device is cuda, but this machine has no CUDA devices: use --device cpu or auto"),
    (train("--device", "tpu"), "--device is 'tpu'; choose auto, cpu, cuda or cuda:i"),
    (train("--precision", "tf32"), "--precision tf32 is a mode of CUDA devices"),
    (train("--preset", "huge"), "--preset is 'huge'; choose one of demo, stated, paper, best, or"),
    (train("--config", "bad.toml"), "--config bad.toml cannot be read"),
    (train("--config", "none.toml"), "--config none.toml cannot be read"),
    (train("--config", "unknown.toml"), "There is no setting 'colour'"),
    (train("--config", "odd.toml"), "--r is 'half'"),
    (train("--config", "part.toml"), "--config part.toml: there is no part [colours]; known are problem"),
    (train("--config", "deep.toml"), "--config deep.toml cannot be read"),
    (train("--colour", "red"), "Unknown option: --colour"),
    (train("surplus"), "Unused Tokens: ['surplus']"),
    (["retrain"], 'Unknown command "retrain"'),
    # eval, predict
    (["eval"], "--run requires an argument"),
    (["eval", "none"], "there is no such directory. A sweep given --keep-models has its models in"),
    (["eval", "empty"], "empty is not a run: it has no config.json"),
    (["eval", "foreign"], "has format 7"),
    (["eval", "damaged"], "model.safetensors is damaged"),
    (["eval", "done", "--samples", "0"], "--samples is 0"),
    (["eval", "done", "--fill", "nonzero"], "--fill nonzero is about sparse inputs: add --distribution sparse"),
    (["eval", "done", "--tau", "0.6"], "tolerances lie in (0, 0.5]"),
    (["eval", "done", "--tau", "small"], "--tau is 'small', but must be numbers"),
    (["eval", "done", "--device", "cuda:3"], "--device is cuda:3"),
    (["predict", "done", "1", "2", "3"], "Each row must have 4 numbers; these have shape 1×3"),
    (["predict", "done", "--file", "rows.npy"], "The rows of rows.npy are no text: give a .csv or a .npz file."),
    (["predict", "done", "1", "2", "3", "7"], "The inputs must lie in 0..6; found 7"),
    (
        ["predict", "done", "1", "2", "3", "9" * 23],
        "The inputs must lie in 0..6; found 99999999999999999999999: take them mod 7.",
    ),
    (["predict", "done", "--file", "rows.csv"], "Each row must have 4 numbers; row 1 has 3"),
    (["predict", "done", "--file", "words.csv"], "must be whole numbers"),
    (["predict", "done", "--file", "none.csv"], "cannot be read"),
    (["predict", "done", "--file", "broken.npz"], "cannot be read as an .npz file"),
    (["predict", "done", "1", "--file", "rows.csv"], "Give either numbers or --file, not both"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_use_is_one_sentence_and_harms_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = snapshot(place)
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert words in error
    assert error.startswith("Error: ")
    assert error.endswith((".\n", "?\n"))
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert snapshot(place) == before
    assert not Path("new").exists()


def test_a_head_that_does_not_fit_says_what_it_needs(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**32)
    assert main(train("--embedding", "token", "--q", "974269", "--k", "16")) == 2
    error = capsys.readouterr().err
    assert "15,588,304 classes" in error
    assert "Use --embedding angular" in error
    assert "4.0 GiB is free" in error
    assert not Path("new").exists()


def test_no_rows_on_standard_input(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["predict", "done"]) == 2
    assert "There are no rows to predict" in capsys.readouterr().err


def test_data_that_changed_since_is_noticed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *flags("--data", "good.npz", "--out", "new", "--quiet")]) == 0
    Path("new/result.json").unlink()
    np.savez("good.npz", x=np.ones((60, 4), dtype=int))
    assert main(["train", "--resume", "--out", "new"]) == 2
    assert "its contents have changed" in capsys.readouterr().err


def test_a_loss_that_becomes_nan_fails_with_the_step_and_keeps_the_checkpoint(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --lr 1e30 the first step's loss is still finite, and that step is saved; the second step's loss is not."""
    assert main(train("--lr", "1e30", "--epochs", "30", "--warmup", "0.9", "--checkpoint-every", "1")) == 1
    error = capsys.readouterr().err
    assert "The loss stopped being finite at step " in error
    assert "is kept in new" in error
    assert Path("new/state.safetensors").exists()
    assert "stopped being finite" in json.loads(Path("new/result.json").read_text())["failed"]
    for line in Path("new/metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


def test_what_is_nobodys_mistake_fails_with_1(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("auxmod.experiments.single.save_state", full)
    assert main(train()) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert "Traceback" not in error
