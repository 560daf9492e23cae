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
FRAME_MS = 160
FRAMES = 24
STEP_S = 2.5
"""Time of the run from one frame to the next."""
WIDTH = 440
"""Width of the animation, pixels."""
COLOURS = 128
VARIED = {"mechanisms.sampling.sampling": [0.1, 0.2, 0.3, 0.45], "population.outside": [0, 10_000, 1_000_000]}


def _picture(page: Page, **options: object) -> Image.Image:
    image = Image.open(io.BytesIO(page.screenshot(**options)))  # type: ignore[arg-type]
    image.thumbnail((WIDTH if "clip" in options else image.width, image.height))
    return image.convert("P", palette=Image.Palette.ADAPTIVE, colors=24 if "clip" in options else COLOURS)


def main() -> None:
    """Save the top of the reports of `manhattan` and of a study of it, and the vehicles of `collusion` at a query."""
    executable = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        run, study, attacked = (Path(folder) / name for name in ("run", "study", "attacked"))
        cv.run("manhattan", out=run)
        cv.run("collusion", out=attacked)
        cv.sweep("manhattan", VARIED, replicates=5, out=study)
        browser = tools.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1330})
        page.goto((run / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "report.png", optimize=True)

        page.goto((attacked / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        guess = cv.load(attacked).guesses.query("coalition == 'server:1, server:2'").iloc[0]
        page.locator("#choose-campaign").select_option(label=guess["campaign"])
        page.locator("#choose-mechanism").select_option(guess["mechanism"])
        page.locator("#choose-guess").select_option(f"{guess['coalition']} ({guess['name']})")
        clip, frames = page.locator("#stage").bounding_box(), []
        for frame in range(FRAMES):
            time_s = guess["time_s"] + STEP_S * (frame - FRAMES / 2)
            page.evaluate(
                "time => { const box = document.getElementById('choose-time'); box.step = 'any'; box.value = time;"
                " box.dispatchEvent(new Event('input')); }",
                time_s,
            )
            frames.append(_picture(page, clip=clip, full_page=True))
        frames[0].save(
            FOLDER / "vehicles.gif", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=True
        )

        page.set_viewport_size({"width": 1240, "height": 1010})
        page.goto((study / "report.html").as_uri())
        page.wait_for_selector("html[data-report=ready]", state="attached")
        _picture(page).save(FOLDER / "study.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
