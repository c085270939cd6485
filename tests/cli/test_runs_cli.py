"""Tests of `auxmod runs`: it lists, shows and compares what is in a store, and removes runs but nothing else."""

import fcntl
import io
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import made_up
from auxmod.cli import display, main
from auxmod.experiments import catalogue, claims
from auxmod.experiments.groups import differing, labels
from auxmod.experiments.results_file import Results, result_row
from auxmod.experiments.run_directory import Run
from auxmod.files import sealed, write_json
from tiny import tiny

CURVE = [{"step": step, "loss": 1 / step, "accuracy": step / 100} for step in (10, 20, 40)]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs, one of them done; a results file of four cells, one of them failed; and two files that are neither."""
    monkeypatch.chdir(tmp_path)
    done = Run.create(Path("runs/demo/aux"), tiny(k=5, r=0.4))
    for point in CURVE:
        done.log(point)
    done.record({"seconds": 3.5})
    done.finish({"match": 0.9, "chance": 1 / 7})
    Run.create(Path("runs/begun"), tiny(method="naive", seed=3, init=0.02))
    rows = [
        result_row(tiny(k=k, r=0.1), {"match": k / 10, "chance": 1 / 7}, {"seconds": k}, validation=0.3, curve=CURVE)
        for k in (3, 4, 6)
    ]
    Results(Path("runs/sweep.jsonl")).append([*rows, result_row(tiny(lr=1e30), None, {}, failed="It [/] failed.")])
    Path("runs/other.jsonl").write_text('{"a": 1}\n')
    Path("runs/bad.jsonl").write_text('{"hash": 1}\n')
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["runs", "list", *arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_a_dumb_terminal_is_told_every_column() -> None:
    out, words = io.StringIO(), [f"word{number:03}" for number in range(20)]
    made = display.table("many", words, [words])
    display._Console(file=out, force_terminal=True, _environ={"TERM": "dumb"}).print(made)
    assert all(out.getvalue().count(word) == 2 for word in words)


@pytest.mark.usefixtures("store")
def test_everything_in_the_store_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "list"]) == 0
    said = capsys.readouterr()
    assert "6 of runs" in said.out
    assert "runs/demo/aux" in said.out
    assert tiny(k=4, r=0.1).hash in said.out
    assert said.err == "Left out: Line 1 of runs/bad.jsonl is not a result: name another --results file.\n"
    states = {row["name"]: row["state"] for row in listed(capsys)}
    assert states["runs/begun"] == "unfinished"
    assert states["runs/demo/aux"] == "done"
    assert states[tiny(lr=1e30).hash] == "failed"
    assert len(listed(capsys, "runs/sweep.jsonl")) == 4
    assert [row["validation"] for row in listed(capsys, "runs/demo/aux")] == [0.4]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("where", "ks"),
    [
        ("method=aux", [5, 3, 4, 6, 4]),
        ("method=aux,k>=4, r=0.1", [4, 6]),
        ("match>0.35", [5, 4, 6]),
        ("match<=0.4", [3, 4]),
        ("state=failed", [4]),
        ("method!=aux", [None]),
        ("bias=true,seed=3", [None]),
        ("k!=4,seed<1", [5, 3, 6]),
        ("k=none", [None]),
        ("k!=None", [5, 3, 4, 6, 4]),
        ("k<0.004K", [3]),
        ("moduli=1,4", [4, 4]),
        ("moduli=1,4 , state=done", [4]),
        ("weights=0.9,0.1,k>3", [4, 6]),
        ("weights = .90, 1e-1 ,k>3", [4, 6]),
        ("moduli=1, 4", [4, 4]),
        ("moduli=1", [None]),
        ("harmonics=none", [5, 3, 4, 6, 4, None]),
        ("init=2e-2", [None]),
        ("init!=.02", [5, 3, 4, 6, 4]),
        ("bias=True", [5, 3, 4, 6, 4, None]),
    ],
)
def test_it_is_filtered(capsys: pytest.CaptureFixture[str], where: str, ks: list[Any]) -> None:
    assert sorted(row["k"] or 0 for row in listed(capsys, "--where", where)) == sorted(k or 0 for k in ks)


@pytest.mark.usefixtures("store")
def test_a_model_alone_is_no_unfinished_run(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(Path("runs/begun/model.safetensors"), {})
    states = {row["name"]: row["state"] for row in listed(capsys)}
    assert (states["runs/begun"], states["runs/demo/aux"]) == ("model", "done")
    Run.open("runs/begun").log(CURVE[0])
    assert {row["name"]: row["state"] for row in listed(capsys)}["runs/begun"] == "unfinished"


@pytest.mark.usefixtures("store")
def test_cells_that_were_saved_and_not_finished_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    results, done = Path("runs/sweep.jsonl"), tiny(k=3, r=0.1).hash
    claim = claims.take(claims.directory_of(results), ["a", "b", "c", done])
    account = {"members": ["a", "b", "c", done], "gone": ["b"], "step": 1200}
    made_up.save_account(claim.state, sealed(account))
    told = "runs/sweep.jsonl: 2 more, saved at step 1,200: the command that began them goes on from there.\n"
    assert main(["runs", "list", "runs/sweep.jsonl"]) == 0
    assert told not in capsys.readouterr().err  # these cells are in training
    with open(results, "rb") as file:
        claim.release()
        fcntl.flock(file, fcntl.LOCK_EX)  # the process that holds the file may be about to claim them
        assert main(["runs", "list"]) == 0
        assert told not in capsys.readouterr().err
    for more in ([], ["--json"]):
        assert main(["runs", "list", *more]) == 0
        assert told in capsys.readouterr().err
    Path("runs/demo/aux.d").mkdir()  # beside a run, not beside a results file
    for wrong in (account | {"step": "x"}, account | {"gone": None}, sealed(account) | {"step": 7}, {"members": []}):
        made_up.save_account(claim.state, wrong)
        assert main(["runs", "list"]) == 0
        assert "saved at step" not in capsys.readouterr().err


@pytest.mark.usefixtures("store")
def test_it_is_sorted_with_what_has_no_figure_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["match"] for row in listed(capsys, "--sort", "match")] == [0.9, 0.6, 0.4, 0.3, None, None]
    smallest = [row["match"] for row in listed(capsys, "--sort", "match", "--reverse")]
    assert smallest == [0.3, 0.4, 0.6, 0.9, None, None]
    assert listed(capsys, "--reverse") == listed(capsys)[::-1]
    assert main(["runs", "list", "--sort", "lr", "--where", "width=8"]) == 0
    page = capsys.readouterr().out
    assert "width" in page
    assert "1e+30" in page


def test_models_kept_on_the_way_are_listed_in_the_order_of_their_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("63", "7", "126", "07", "a1b10", "a1b9"):
        Run.create(Path("steps", name), tiny(seed=len(name)))
    names = [row["name"].removeprefix("steps/") for row in listed(capsys, "steps")]
    assert names == ["07", "7", "63", "126", "a1b9", "a1b10"]


@pytest.mark.usefixtures("store")
def test_beside_its_seconds_a_list_says_how_many_were_trained_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    made = {"seconds": 12.5, "members": 3, "device": "cpu"}
    Results(Path("runs/more.jsonl")).append([result_row(tiny(seed=9), {"match": 0.1, "chance": 1 / 7}, made)])
    assert main(["runs", "list", "runs/more.jsonl", "--sort", "seconds"]) == 0
    head, row = [re.split("[│┃]", each) for each in capsys.readouterr().out.splitlines() if re.search("[│┃]", each)]
    assert [word.strip() for word in head[-3:-1]] == ["seconds", "members"]
    assert [word.strip() for word in row[-3:-1]] == ["12.5", "3"]
    assert [row["hash"] for row in listed(capsys, "--where", "members>2")] == [tiny(seed=9).hash]


@pytest.mark.usefixtures("store")
def test_one_run_is_shown_by_path_name_or_hash(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("runs/demo/aux", "demo/aux", tiny(k=5, r=0.4).hash[:6]):
        assert main(["runs", "show", name, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["scores"]["match"] == 0.9
        assert told["curve"][-1] == [40, 0.4]
    assert main(["runs", "show", "begun"]) == 0
    assert "runs/begun: unfinished" in capsys.readouterr().out
    assert main(["runs", "show", tiny(lr=1e30).hash]) == 0
    assert "It [/] failed." in capsys.readouterr().out
    assert main(["runs", "show", tiny(k=6, r=0.1).hash]) == 0
    page = capsys.readouterr().out
    assert "60.0 %" in page
    assert "Held-out match accuracy" in page


def test_curves_are_compared_on_one_plot(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    names = [tiny(k=k, r=0.1).hash for k in (3, 6)]
    assert main(["runs", "compare", *names, "demo/aux", "--out", "plot.svg"]) == 0
    page = capsys.readouterr().out
    assert "k=3 r=0.1" in page
    assert "k=5 r=0.4" in page
    assert b"<svg" in Path("plot.svg").read_bytes()
    assert main(["runs", "compare", "--where", "r=0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in told] == ["k=6", "k=4", "k=3"]
    assert main(["runs", "compare", "demo/aux", "runs/demo/aux", names[0], "runs/../runs/demo/aux", "--json"]) == 0
    assert [row["k"] for row in json.loads(capsys.readouterr().out)] == [5, 3]  # each run once, however it is named
    assert main(["runs", "compare", *names, "--out", "plot.svg"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["runs", "compare", *names, "--out", "plot.PNG"]) == 0
    assert Path("plot.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("store")
def test_without_matplotlib_one_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["runs", "compare", "demo/aux", "--out", "plot.png"]) == 2
    assert "Figures need matplotlib: install it with pip install 'auxmod[plot]'." in capsys.readouterr().err
    assert not Path("plot.png").exists()


def test_what_tells_runs_apart_is_their_label() -> None:
    entries = [
        catalogue.Entry(Path("a.jsonl"), result_row(config, {}, {}))
        for config in (tiny(method="naive"), tiny(k=4), tiny(k=4, lr=0.5))
    ]
    assert labels(entries)[0] == "method=naive lr=0.001"
    assert labels(entries[1:]) == ["lr=0.001", "lr=0.5"]
    auto = catalogue.Entry(Path("a.jsonl"), result_row(tiny(method="auto"), {}, {}))  # differs in many settings
    assert labels([entries[0], auto]) == ["method=naive", "method=auto"]
    assert labels([entries[0]]) == [tiny(method="naive").hash]


# -- removing -------------------------------------------------------------------------------------------------


def test_a_run_is_removed_when_that_is_meant(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (Path("runs/begun") / ".state.safetensors.x1").write_bytes(b"what a kill left")
    assert main(["runs", "rm", "runs/begun"]) == 2
    assert "add --yes" in capsys.readouterr().err
    assert Path("runs/begun").exists()
    assert main(["runs", "rm", "runs/begun", "runs/demo/aux", "--yes"]) == 0
    assert not Path("runs/begun").exists()
    assert Path("runs/demo").exists()
    assert Path("runs/sweep.jsonl").exists()


def test_a_run_in_training_is_not_removed_and_one_named_twice_is_removed_once(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Run.open(Path("runs/begun")).held():
        assert main(["runs", "rm", "runs/begun", "--yes"]) == 2
    assert "Another process trains the run in runs/begun" in capsys.readouterr().err
    assert Path("runs/begun/config.json").exists()
    assert main(["runs", "rm", "runs/../runs/begun", "runs/begun", "runs/begun/", "--yes"]) == 0
    assert capsys.readouterr().out == "deleted: runs/begun\n"


def test_a_kept_model_named_beside_its_run_goes_with_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Path("runs/begun/steps/10")
    kept.mkdir(parents=True)
    shutil.copy("runs/begun/config.json", kept)
    for wrong in ("runs/begun/typo", "runs/begun/config.json", "runs/begun/steps"):
        assert main(["runs", "rm", "runs/begun", wrong, "--yes"]) == 2
    capsys.readouterr()
    assert main(["runs", "rm", "runs/begun", str(kept), "--yes"]) == 0
    assert capsys.readouterr().out == "deleted: runs/begun\n"
    assert not Path("runs/begun").exists()


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_asked_it_does_what_is_answered(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert main(["runs", "rm", "runs/begun"]) == 0
    assert Path("runs/begun").exists() == (answer != "y")


def test_an_end_of_input_is_no_answer(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["runs", "rm", "runs/begun"]) == 0
    assert "Nothing was deleted." in capsys.readouterr().out
    assert Path("runs/begun").exists()


def test_a_long_path_is_not_cut(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Path("a" * 100, "b" * 100)
    place.mkdir(parents=True)
    assert main(["runs", "list", str(place)]) == 0
    assert f"0 of {place}" in capsys.readouterr().out.replace("\n", "")
    assert main(["reproduce", "headline", "--dry-run", "--results", str(place)]) == 0
    assert f"What there is in {place}, and what is missing" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rm", "runs", "--yes"], "runs is not a run: it has no config.json."),
        (["rm", "none", "--yes"], "none is not a run: there is no such directory."),
        (["rm", "runs/sweep.jsonl", "--yes"], "is not a run"),
        (["rm", "runs/begun", "runs/mine", "--yes"], "runs/mine holds more than a run (notes.txt)"),
        (["rm", "runs/foreign", "--yes"], "This configuration has format 7"),
        (["rm", "runs/link", "--yes"], "runs/link is a link"),
        (["show", "zzz"], "There is no run 'zzz'"),
        (["show", "zzz"], "Not read: Line 1 of runs/bad.jsonl is not a result"),
        (["show", ""], "may be any of"),
        (["list", "none"], "There is no store none"),
        (["list", "runs/other.jsonl"], "Line 1 of runs/other.jsonl is not a result"),
        (["compare", "--where", "method=ladder"], "No run in runs is as --where 'method=ladder' asks."),
        (["list", "--where", "method=auxx"], "--where asks for method 'auxx', but it is one of naive, sparse, aux"),
        (["list", "--where", "moduli=two"], "--where compares moduli, a list of numbers, with 'two', which is none"),
        (["list", "--where", "state=ended"], "--where asks for state 'ended', but it is one of done, failed"),
        (["list", "--where", "method"], "--where is 'method', but must be conditions"),
        (["list", "--where", "colour=red"], "There is no 'colour' to choose by"),
        (["list", "--where", "n=999,colour=red"], "There is no 'colour' to choose by"),
        (["list", "--where", "n=999", "--sort", "colour"], "There is no 'colour' to choose by"),
        (["list", "--where", "method==aux"], "--where is 'method==aux', but must be conditions"),
        (["list", "--where", "state>done"], "--where orders state, which is no number: compare it with = or !=."),
        (["list", "--where", "bias=yes"], "--where asks for bias 'yes', but it is true or false."),
        (["list", "--where", "match>abc"], "--where compares match, a number, with 'abc', which is not a number."),
        (["list", "--where", "n=four"], "--where compares n, a number, with 'four'"),
        (["list", "--sort", "colour"], "There is no 'colour' to choose by"),
        (["compare"], "Name the runs to compare"),
        (["compare", "demo/aux", "--where", "n=4"], "choose them with --where: one of the two."),
        (["compare", "runs/begun"], "has a learning curve yet"),
        (["compare", "demo/aux", "--out", "plot.txt"], "does not end in .png, .svg or .pdf"),
        (["compare", "demo/aux", "--out", "runs/other.jsonl/plot.png"], "but 'runs/other.jsonl' is a file"),
    ],
)
def test_wrong_use_is_a_sentence_and_removes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    Run.create(Path("runs/mine"), tiny())
    Path("runs/mine/notes.txt").write_text("mine")
    Path("runs/foreign").mkdir()
    Path("runs/foreign/config.json").write_text(json.dumps(tiny().to_dict() | {"format": 7}))
    Path("runs/link").symlink_to("begun")
    before = sorted(store.rglob("*"))
    assert main(["runs", *arguments]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")
    assert sorted(store.rglob("*")) == before


@pytest.mark.usefixtures("store")
def test_a_run_that_is_in_two_results_files_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Its figures count, not its failure, whichever file comes last."""
    one = tiny(k=4, r=0.1)
    Results(Path("runs/z.jsonl")).append([result_row(one, None, {}, failed="It diverged.")])
    Results(Path("runs/again.jsonl")).append([result_row(one, {"match": 0.4, "chance": 1 / 7}, {}, curve=CURVE)])
    assert main(["runs", "show", one.hash, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    assert main(["runs", "compare", "--where", "state=done,r=0.1", "--json"]) == 0
    assert [each["label"] for each in json.loads(capsys.readouterr().out)] == ["k=6", "k=4", "k=3"]


@pytest.mark.usefixtures("store")
def test_a_run_can_be_removed_from_within(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path("runs/demo/aux").resolve()
    monkeypatch.chdir(here)
    assert main(["runs", "rm", ".", "--yes"]) == 0
    assert not here.exists()


@pytest.mark.usefixtures("store")
def test_what_has_no_figure_is_left_out_by_every_condition_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    for where in ("match!=1", "match<1", "match>0"):
        assert {row["state"] for row in listed(capsys, "--where", where)} == {"done"}
    assert {row["state"] for row in listed(capsys, "--where", "match=none")} == {"failed", "unfinished"}


# -- a large q, and swept settings --------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three cells, one with another learning rate; q is so large that few answers are exact, so curves have `near`."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for seed, lr, near in ((0, 1e-3, 0.9), (1, 1e-3, 0.8), (0, 2e-3, 0.3)):
        made = made_up.row(tiny(q=974269, method="naive", seed=seed, lr=lr), match=0.0, tau=near)
        rows.append(made | {"curve": [{"step": step, "loss": 1.0, "accuracy": 0.0, "near": near} for step in (9, 18)]})
    Results(Path("runs/large.jsonl")).append(rows)
    return tmp_path


@pytest.mark.usefixtures("large")
def test_a_list_has_what_was_swept_and_of_a_large_q_near_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "list", "--sort", "tau_0.005"]) == 0
    head, *rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line or "┃" in line]
    assert [word.strip() for word in head[0].strip("┃").split("┃")][-2:] == ["lr", "tau_0.005"]
    assert [[cell.strip() for cell in row][-3:-1] for row in rows] == [
        ["0.001", "90.0 %"],
        ["0.001", "80.0 %"],
        ["0.002", "30.0 %"],
    ]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("where", "count"), [("tau_0.005>0.5", 2), ("near<0.5", 1), ("tau_0.05>=0.3,seed=0", 2), ("tau_0.1=none", 0)]
)
def test_near_answers_can_be_chosen_by(capsys: pytest.CaptureFixture[str], where: str, count: int) -> None:
    assert len(listed(capsys, "--where", where)) == count


@pytest.mark.usefixtures("large")
def test_curves_of_a_large_q_are_of_near_answers(capsys: pytest.CaptureFixture[str]) -> None:
    name = listed(capsys)[0]["hash"]
    assert main(["runs", "show", name]) == 0
    shown = capsys.readouterr().out
    assert "Held-out answers within 0.005·q" in shown
    assert re.search(r"tau_0\.005 +│ 90\.0 %", shown)
    assert main(["runs", "compare", "--where", "n=4", "--each", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {point[1] for run in told for point in run["curve"]} == {0.9, 0.8, 0.3}
    assert {run["curve_of"] for run in told} == {"near"}
    assert main(["runs", "show", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["curve_of"] == "near"
    Results(Path("runs/old.jsonl")).append(
        [made_up.row(tiny(q=974269, method="naive", seed=7))]
    )  # stored before there was `near`
    assert main(["runs", "compare", "--where", "n=4"]) == 0
    assert "Held-out match accuracy" in capsys.readouterr().out
    assert main(["runs", "compare", "--where", "n=4", "--json"]) == 0
    assert {run["curve_of"] for run in json.loads(capsys.readouterr().out)} == {"accuracy"}


def test_runs_of_their_own_data_are_told_apart_by_its_name(tmp_path: Path) -> None:
    rows = [
        made_up.row(tiny(method="naive", data=f"{tmp_path}/{name}.npz", data_sha256=digest * 32))
        for name, digest in (("mine", "ab"), ("yours", "cd"))
    ]
    rows += [made_up.row(tiny(method="naive")), rows[0] | {"config": changed(rows[0]["config"], "ef" * 32)}]
    entries = [catalogue.Entry(tmp_path, row) for row in rows]
    assert labels(entries[:3]) == ["data=mine.npz", "data=yours.npz", "data=drawn"]
    assert differing([entries[0].settings, entries[3].settings]) == ["data_sha256"], "one file, two contents"


def changed(config: dict[str, Any], digest: str) -> dict[str, Any]:
    return config | {"training": config["training"] | {"data_sha256": digest}}


@pytest.mark.usefixtures("store")
def test_what_follows_from_the_method_and_n_is_no_axis(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [made_up.row(tiny(method=method, n=n)) for method in ("auto", "ladder") for n in (4, 8)]
    Results(Path("runs/more/methods.jsonl")).append(rows)
    assert main(["runs", "list", "runs/more"]) == 0
    head = capsys.readouterr().out
    assert "moduli" not in head
    assert "weights" not in head


def test_whole_numbers_are_compared_by_every_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Run.create(Path("runs/large"), tiny(seed=1234567890123456789, moduli=(1, 1234567), weights=(0.5, 0.5)))
    for where in ("seed=1234567890123456789", "moduli=1,1234567", "seed>1234567890123456788"):
        assert len(listed(capsys, "--where", where)) == 1
    for where in ("seed=1234567890123456788", "moduli=1,1234568", "seed>1234567890123456789"):
        assert not listed(capsys, "--where", where)


@pytest.mark.usefixtures("store")
def test_a_pipe_in_a_store_is_no_results_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "runs" / "pipe.jsonl")
    assert len(listed(capsys)) == 6


def test_a_title_wider_than_its_table_is_not_cut() -> None:
    out, title = io.StringIO(), " ".join(f"word{number:03}" for number in range(30))
    display._Console(file=out, width=40).print(display.table(title, ["a"], [["b"]]))
    assert " ".join(out.getvalue().split()).startswith(title)
    out = io.StringIO()
    display._Console(file=out, width=40).print(display.mapping(title, {"a": "[/]"}))
    assert " ".join(out.getvalue().split()).startswith(title)
