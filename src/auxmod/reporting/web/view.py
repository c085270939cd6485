"""One run as a page: its answers on the circle, its errors, its learning curve, and what is inside the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.experiments.catalogue import Entry
from auxmod.experiments.choosing import constant
from auxmod.experiments.trusted import configuration
from auxmod.problem.theory import SEEN, seen_by
from auxmod.reporting.render import with_spread
from auxmod.reporting.web import charts, file, stored_runs


def page(entry: Entry, scores: Mapping[str, Any], looked: Mapping[str, Any]) -> str:
    """Build the page of a run from its scores and from what `experiments.inspection` found in its model."""
    settings = entry.settings
    verdict, pictures = _inside(looked, settings["q"], len(settings["harmonics"]))
    drawn = {"answers": charts.ring(looked["truth"], looked["error"], settings["q"])}
    drawn |= {"errors": charts.histogram(looked["edges"], looked["counts"])}
    drawn |= {name: picture for name, (_, picture) in pictures.items()}
    config = configuration(entry.row["config"])
    right, least = 100 * scores["match"], 100 * max(scores["chance"], constant(scores))
    sum_of = f"It adds {settings['n']} numbers mod {settings['q']:,}"
    blind = "the best constant answer" if "constant" in scores else "guessing"
    headline = f"{sum_of} and is right on {right:.1f} % of {_sums(config, scores)}; {blind} gives {least:.2g} %."
    if entry.state in ("failed", "unfinished"):
        failed = f": {entry.row['failed']}" if entry.state == "failed" else "."
        headline += f" The run is {entry.state}; this is its last checkpoint{failed}"
    tiles = [(f"{100 * scores['match']:.1f} %", f"match, of {scores['samples']:,} test inputs")]
    tiles += [
        (f"{100 * share:.1f} %", f"within {tau} of the circle; chance {100 * scores['tau_chance'][tau]:.1f} %")
        for tau, share in scores["tau"].items()
    ]
    return file.render(
        "view.html",
        title=f"auxmod: {entry.path.resolve().name}",
        headline=headline,
        tiles=tiles,
        verdict=verdict,
        pictures=[(name, caption) for name, (caption, _) in pictures.items()],
        drawn=len(looked["truth"]),
        measured=looked["samples"],
        data={"charts": drawn, "runs": stored_runs.told([entry], entry.path), "chosen": [0]},
    )


def _sums(config: RunConfig, scores: Mapping[str, Any]) -> str:
    """What a run's figures are of, in words."""
    if "constant" in scores:
        return f"the sums of {Path(config.training.test_data).name}"
    seen = seen_by(config)
    if seen is None:
        return "sums of numbers drawn evenly"
    return "sums it has not seen" if seen < SEEN else f"sums, {100 * seen:.1f} % of which it has trained on"


def _inside(looked: Mapping[str, Any], q: int, harmonics: int) -> tuple[list[str], dict[str, tuple[str, charts.Chart]]]:
    """Sentences about the model's inside, and pictures of it by name, each with its caption."""
    said, pictures = [], {}
    if plane := looked.get("plane"):
        place = f"{with_spread(plane['radius'], plane['spread'], 2)} from the centre"
        one = f"The read-out puts its answers {place}; one that is sure of every answer puts them all at 1."
        several = f"The answer is read from several points; that of q, which is drawn, lies {place}."
        said.append(several if harmonics else one)
        phase = [truth / q for truth in looked["truth"]]
        drawn = charts.plane(plane["points"], phase, looked["truth"], circle=True)
        pictures["plane"] = ("The read-out plane, coloured by the true residue", drawn)
    if table := looked.get("table"):
        share, noise = max(table["shares"]), 1 / len(table["shares"])
        said.append(
            f"The embedding’s strongest frequency is {table['frequency']}, with {100 * share:.1f} % of its variance; "
            f"in noise each has about {100 * noise:.1f} %. Each token placed by what the others say of that frequency, "
            f"they agree with a ring to {table['order']:.2f}; 1 is a perfect circle, and these tokens in orders that "
            f"mean nothing agree to {with_spread(table['shuffled'][0], table['shuffled'][1], 2)}."
        )
        both, names = 100 * sum(table["explained"]), range(q)
        main = charts.plane(table["pca"], table["phase"], names, circle=False)
        ring = charts.plane(table["ring"], table["phase"], names, circle=True)
        pictures["ring"] = (f"The tokens by frequency {table['frequency']}, coloured by where they belong", ring)
        pictures["pca"] = (f"The embedding’s two main directions, {both:.1f} % of its variance", main)
        pictures["spectrum"] = ("The embedding’s Fourier spectrum over the residues", charts.spectrum(table["shares"]))
    return said, pictures
