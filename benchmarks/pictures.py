"""Make the pictures of the README and the docs from real runs (needs the `dev` extra)."""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import crowdveil as cv

FOLDER = Path(__file__).parents[1] / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
COLOURS = 256
VARIED = {"mechanisms.sampling.sampling": [0.1, 0.2, 0.3, 0.45], "population.outside": [0, 10_000, 1_000_000]}


def _picture(page: Page) -> Image.Image:
    image = Image.open(io.BytesIO(page.screenshot()))
    return image.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS)


def _save_participation(name: str, folder: Path) -> None:
    """Save the figure of a study of participation, with the default levels."""
    command = [sys.executable, "-m", "simulator.cli", "participation", name, "--out", str(folder), "--quiet"]
    subprocess.run(command, check=True)
    image = Image.open(folder / "participation.png").convert("RGB")
    image = image.resize((1200, round(1200 * image.height / image.width)), Image.Resampling.LANCZOS)
    image = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS)
    image.save(FOLDER / f"participation-{name}.png", optimize=True)


def main() -> None:
    """Save tops of reports of `manhattan` and of a study of it, a film of `collusion`, and figures of participation."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("manhattan", "bologna-fcd"):
            _save_participation(name, Path(folder) / name)
    executable = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        run, study, attacked = (Path(folder) / name for name in ("run", "study", "attacked"))
        cv.run("manhattan", out=run)
        cv.run("collusion", out=attacked)
        cv.sweep("manhattan", VARIED, replicates=5, out=study)
        browser = tools.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 2060})
        page.goto((run / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "report.png", optimize=True)

        attack = {"campaign": "per-round", "mechanism": "sampling", "coalition": "server:1, server:2"}
        film = FOLDER / "vehicles.gif"
        cv.write_film(cv.load(attacked), film, **attack, from_s=600, to_s=660, every_s=1.5, overwrite=True)

        page.set_viewport_size({"width": 1240, "height": 1010})
        page.goto((study / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "study.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
