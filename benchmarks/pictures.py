"""Make the pictures of the README and the docs from real runs (needs the `dev` extra)."""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import crowdveil as cv

FOLDER = Path(__file__).parents[1] / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FRAME_MS = 900
WIDTH = 760
"""Width of the animation, pixels."""
COLOURS = 128
VARIED = {"mechanisms.sampling.sampling": [0.1, 0.2, 0.3, 0.45], "population.outside": [0, 10_000, 1_000_000]}


def _picture(page: Page, **options: object) -> Image.Image:
    image = Image.open(io.BytesIO(page.screenshot(**options)))  # type: ignore[arg-type]
    image.thumbnail((WIDTH if "clip" in options else image.width, image.height))
    return image.convert("P", palette=Image.Palette.ADAPTIVE, colors=48 if "clip" in options else COLOURS)


def main() -> None:
    """Run `manhattan` and a study of it, and save the top of their reports and the map over its queries."""
    executable = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        run, study = Path(folder) / "run", Path(folder) / "study"
        cv.run("manhattan", out=run)
        cv.sweep("manhattan", VARIED, replicates=5, out=study)
        browser = tools.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1330})
        page.goto((run / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "report.png", optimize=True)

        frames = []
        clip = page.locator("#panels").bounding_box()
        for query in cv.load(run).estimates["query"].unique():
            page.locator("#choose-query").fill(str(query - 1))
            frames.append(_picture(page, clip=clip, full_page=True))
        frames[0].save(
            FOLDER / "queries.gif", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=True
        )

        page.set_viewport_size({"width": 1240, "height": 1010})
        page.goto((study / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "study.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
