"""Tests of the verdicts on the paper's claims: each follows from our figures, for or against, or from no runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

import made_up
from auxmod.experiments import recipes, wants
from auxmod.experiments.wants import Wanted
from auxmod.files import write_lines
from auxmod.reporting import published
from auxmod.reporting.documents.verdicts import Claim, in_short, verdicts

Share = Callable[[str, Wanted], float]
"""Gives a run of an item its made-up accuracy."""
FIGURES = {"the figures of its own method", "the figures of the baseline"}
OUTPERFORMS = "its method “consistently outperforms the baseline across all configurations” ({} samples)"
TENTH = "its method is “equal or superior” from a tenth of the samples"
UNSTABLE = "the baseline “suffers from severe instability”"
WORST = "even the worst of the pairs (K, r) is a “clear improvement over the baseline” (1M samples; ours 100K)"
RHO = "“ρ ≈ 1 for the combination of K and r that perform well”"


def store(place: Path, share: Share) -> Path:
    """Store the runs that the claims are about, with these accuracies, also within every τ; return the directory."""
    both = ("paper", "best")
    asked = [("table1a", preset, ()) for preset in both] + [("table1b", preset, ()) for preset in both]
    asked += [
        *(("table2", preset, (wants.LARGE,)) for preset in both),
        *(("configs", preset, ()) for preset in both),
        ("table3", "paper", ()),
    ]
    rows = {}
    for item, preset, samples in asked:
        for want in recipes.RECIPES[item](preset, samples):
            match = share(item, want)
            rows.setdefault(want.run, made_up.row(want.run, match=match, tau=match))
    write_lines(place / "all.jsonl", rows.values())
    return place


def said(place: Path) -> dict[str, tuple[str, str]]:
    """For each claim of the paper: what our runs show, and the verdict."""
    lines = [line.strip("|").split(" | ") for line in verdicts(place).splitlines()[2:] if line.startswith("|")]
    return {line[1]: (line[2], line[3].partition(" (")[0].strip("*")) for line in lines}


def as_the_paper_says(item: str, want: Wanted) -> float:
    """Figures that support the claims: for Table 1 the paper's own, and in `best` a baseline that needs 1M samples."""
    run, own = want.run, want.variant in ("aux", "expected")
    n, q, samples = run.problem.n, run.problem.q, run.training.samples
    if item == "table3" and own:
        return 0.99 if (run.method.k, run.method.r) == (4, 0.3) else 0.2  # ρ = 1.16
    if item == "configs":
        return 0.95 if own else 0.98 if run.model.bias else 0.02
    if item == "table2":
        return 0.97 if own else 0.1 if n == 128 else 0.5
    if want.preset == "best":
        return 0.97 if own else 0.9 - 0.01 * n if samples == wants.LARGE else 1 / q
    method, half = "aux" if own else want.variant, published.HALVES[run.model.embedding]
    return (published.find(half, n=n, q=q, samples=samples, method=method) or 0.0) / 100


def otherwise(item: str, want: Wanted) -> float:
    """A baseline that learns everything, and an `aux` at chance."""
    return 1.0 if want.variant == "sparse" else 1 / want.run.problem.q


def test_claims_hold_where_the_figures_are_as_the_paper_says(tmp_path: Path) -> None:
    found = said(store(tmp_path, as_the_paper_says))
    assert len(found) == 13
    few, many = (OUTPERFORMS.format(samples) for samples in ("100K", "1M"))
    partly = {few: "mostly", many: "mostly", WORST: "in part"}  # in places the paper's own are level, or at chance
    assert {claim: verdict for claim, (_, verdict) in found.items() if verdict != "holds"} == partly
    told = "in `paper`, `sparse` is near in 18 of 18 with 100K samples (the paper's is at chance in 14) and 18 of 18"
    assert found["the figures of the baseline"][0].startswith(told)


def test_claims_do_not_hold_where_the_figures_say_otherwise(tmp_path: Path) -> None:
    found = said(store(tmp_path, otherwise))
    assert {claim for claim, (_, verdict) in found.items() if verdict != "does not hold"} == FIGURES | {RHO}
    assert found[RHO][0].startswith("in `paper`, of 0 settings that are learned")
    assert found[OUTPERFORMS.format("100K")][0].endswith("in `best` ahead in 0 of 18, level in 0, behind in 18")


@pytest.mark.parametrize(("behind", "verdict"), [(0, "holds"), (9, "mostly"), (18, "in part")])
def test_the_verdict_is_the_share_of_cells_that_speak_for_it(tmp_path: Path, behind: int, verdict: str) -> None:
    sizes = list(wants.SIZES["angular"])

    def share(item: str, want: Wanted) -> float:
        lost = (
            want.run.model.embedding == "angular" and (want.run.problem.n, want.run.problem.q) in sizes[: behind // 2]
        )
        return 0.5 + 0.1 * (want.variant == "sparse") * (1 if lost else -1)

    found = said(store(tmp_path, share))
    here, given = found[OUTPERFORMS.format("1M")]
    lost = behind // 2
    assert here.startswith(f"in `paper` ahead in {18 - lost} of 18, level in 0, behind in {lost};")
    assert given == verdict
    assert found[TENTH][1] == ("holds" if not lost else "mostly" if lost < 5 else "in part")


@pytest.mark.parametrize(("spread", "verdict"), [(0.49, "does not hold"), (0.51, "holds")])
def test_a_method_is_unstable_by_its_spread(tmp_path: Path, spread: float, verdict: str) -> None:
    found = said(store(tmp_path, lambda item, want: 0.4 + spread * want.run.model.bias))
    assert found[UNSTABLE][1] == verdict


def test_of_the_pairs_only_the_papers_search_speaks_for_rho(tmp_path: Path) -> None:
    """K = 2 is the best of all here, also with r = 0.1, which is far from ρ = 1; but the paper did not try K = 2."""
    store(tmp_path, as_the_paper_says)
    wider = (want.run for want in recipes.grid("paper", (wants.SMALL,)))
    write_lines(tmp_path / "grid.jsonl", [made_up.row(run, 1.0) for run in wider if run.method.k == 2])
    here, verdict = said(tmp_path)[RHO]
    assert verdict == "holds"
    told = "has |ρ − 1| ≤ 0.2 in 18 (by exact wraps in 0), as 12 of its 24 pairs have, and its least K, 4, in 18"
    assert told in here.replace("\\", "")  # by exact wraps K = 4, r = 0.3 is just outside


@pytest.mark.parametrize(("points", "verdict"), [(4, "does not hold"), (6, "holds")])
def test_a_clear_improvement_is_more_than_near(tmp_path: Path, points: int, verdict: str) -> None:
    found = said(store(tmp_path, lambda item, want: 0.5 + (want.variant != "sparse") * points / 100))
    assert found[WORST][1] == verdict


def test_what_was_not_run_has_no_verdict(tmp_path: Path) -> None:
    found = said(tmp_path)
    assert len(found) == 13
    assert {verdict for _, verdict in found.values()} == {"not run"}


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [([], "not run"), ([1, 1], "holds"), ([1, 1, 1, 0], "mostly"), ([1, 1, 0], "in part"), ([0], "does not hold")],
)
def test_a_verdict_in_a_word(cells: list[int], verdict: str) -> None:
    assert Claim("", "", "", [bool(cell) for cell in cells], "").verdict == verdict


def test_in_short_are_the_same_claims_and_verdicts(tmp_path: Path) -> None:
    place = store(tmp_path, otherwise)
    lines = [line.strip("|").split(" | ") for line in in_short(place).splitlines()[2:] if line.startswith("|")]
    short = {says.strip().partition(": ")[2]: verdict.partition(" (")[0].strip(" *") for says, verdict in lines}
    assert short == {says: verdict for says, (_, verdict) in said(place).items()}
    ahead = OUTPERFORMS.format("1M")
    assert f"| Section 5.2: {ahead} | **does not hold** (0 of 36) |" in in_short(place)
