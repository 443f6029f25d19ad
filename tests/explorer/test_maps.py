"""Maps of a sweep: a cell for each pair of settings, whose agent is trained again, to the last bit, and watched."""

import pytest
from playwright.sync_api import expect

import multiadvisor as mad
from explorer.pages import fits, no_barrier, site
from multiadvisor.errors import BadInput
from multiadvisor.explorer.library import Library
from multiadvisor.explorer.maps import maps, trained_again
from multiadvisor.runs.driver import run_jobs
from multiadvisor.runs.jobs import Job
from multiadvisor.runs.training import RunConfig, table_digest

GAMMAS, ALPHAS, SEEDS = (0.4, 0.6, 0.9), (0.1, 0.5), (0, 1)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep, its results by gamma, alpha and seed, and a library that shows it."""
    folder, schedule = tmp_path_factory.mktemp("swept"), {"steps": 300, "eval_every": 300, "eval_episodes": 2}
    first, *_ = mad.make("three-fruits").names
    jobs = {
        (gamma, alpha, seed): Job("train", RunConfig.parse({
            "task": "three-fruits", "schedule": schedule, "weights": {first: 2.0},
            "settings": {"gamma": gamma, "alpha": alpha, "seed": seed},
        }).as_config())
        for gamma in GAMMAS for alpha in ALPHAS for seed in SEEDS
    }  # fmt: skip
    found = run_jobs(folder, list(jobs.values()), workers=0)
    library = Library(episodes=1)
    library.add_folder(folder)
    return {key: found[job] for key, job in jobs.items()}, library


def test_each_cell_is_the_mean_over_seeds(swept):
    results, library = swept
    [found] = maps(library.records)
    assert (found["columns"], found["rows"], found["label"]) == ([*GAMMAS], [*ALPHAS], "alpha over gamma")
    for row, alpha in enumerate(ALPHAS):
        for column, gamma in enumerate(GAMMAS):
            cell = found["cells"][row][column]
            ends = [results[gamma, alpha, seed]["evaluations"][-1]["length"] for seed in SEEDS]
            assert (cell["figures"]["length"], cell["runs"]) == (pytest.approx(sum(ends) / len(ends)), 2)


def test_the_agent_of_a_cell_is_the_run_again(swept):
    results, library = swept
    told = []
    for result in results.values():
        [record] = [one for one in library.records if one.config["settings"] == result["settings"]]
        assert table_digest(trained_again(record, told.append)) == result["sha256"]
    assert told[-1] == 1.0
    with pytest.raises(BadInput, match="no such run"):
        library.record("nothing")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1360, 390])
def test_a_cell_is_chosen_and_its_agent_watched(browser, swept, width):
    library = swept[1]
    with site(browser, {}, library=library) as served:
        with served.tab("view=learning", viewport={"width": width, "height": 844}) as page:
            cells = page.locator(".map button")
            expect(cells).to_have_count(len(GAMMAS) * len(ALPHAS))
            expect(page.locator(".map tbody th")).to_have_text(["0.5", "0.1"])  # upwards
            fits(page)
            no_barrier(page)
            cells.nth(2).click()  # gamma 0.9, alpha 0.5
            expect(page.locator(".toolbar option").first).to_contain_text("empathic 0.9, weights fruit")
            expect(page.locator("#view canvas").first).to_be_visible()
        [entry] = library.entries.values()
        assert (entry.agent.settings.gamma, entry.agent.settings.alpha, entry.agent.steps) == (0.9, 0.5, 300)
        library.entries.clear()
        assert served.complaints == []
