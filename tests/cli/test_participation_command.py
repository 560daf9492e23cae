"""`crowdveil participation`: one page and one figure, and what was run is not run again."""


def test_the_page_the_figure_and_the_tables_are_written_and_runs_are_kept(call, tmp_path):
    arguments = ("participation", "tiny", "--levels", "0.5", "--replicates", "1", "--workers", "0")
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    assert "counts of the busiest tenth of cells are within 20 % of the truth" in done.stdout
    folder = tmp_path / "studies" / "tiny-participation"
    for name in (
        "report.html",
        "participation.svg",
        "participation.pdf",
        "tables/participation.csv",
        "tables/costs.csv",
    ):
        assert (folder / name).stat().st_size > 0
    assert "Huang et al." in (folder / "report.html").read_text(encoding="utf-8")
    again = call(*arguments)
    assert "2 points; 0 are to be run" in again.stderr


def test_wrong_levels_and_groups_are_refused_before_anything_is_run(call, tmp_path):
    done = call("participation", "tiny", "--levels", "2")
    assert done.returncode == 2
    assert "population.participation: must be at most 1; got 2" in done.stderr
    done = call("participation", "tiny", "--by", "class")
    assert done.returncode == 2
    assert "--by" in done.stderr
    assert not (tmp_path / "studies").exists()
