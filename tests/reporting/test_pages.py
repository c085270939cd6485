"""Every generated block of the README and the docs is what `results/` gives now."""

from pathlib import Path

from auxmod.reporting import pages

ROOT = Path(__file__).parents[2]


def test_the_pages_are_up_to_date():
    assert pages.stale(ROOT) == [], "run: make pages"


def test_a_changed_result_makes_a_page_stale(tmp_path):
    for name in {name for name, _, _ in pages.BLOCKS}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "results").mkdir()
    for path in (ROOT / "results").iterdir():
        if path.is_file():
            (tmp_path / "results" / path.name).write_text(path.read_text())
    log = tmp_path / "results" / "speed-log.jsonl"
    log.write_text(log.read_text().replace("0.114", "0.115"))
    assert pages.stale(tmp_path) == ["docs/performance.md: make pages: the log"]
    pages.stale(tmp_path, write=True)
    assert pages.stale(tmp_path) == []
    assert "0.115" in (tmp_path / "docs/performance.md").read_text()
