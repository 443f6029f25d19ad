"""Taking something away: PNG, CSV, and one file that plays without a server."""

import base64
import csv
import gzip
import io
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer.pages import DELAY, DRAWN, LATE, site, until
from multiadvisor.cli import main
from multiadvisor.explorer import export
from multiadvisor.explorer.insights import STATIC
from multiadvisor.explorer.onefile import html, modules, one_script

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(browser, agents):
    with site(browser, agents, episodes=1) as one:
        yield one


def take(page, item):
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=item).click()
    return Path(waiting.value.path()).read_bytes()


def test_png_csv_and_html_from_the_page(served, browser, tmp_path):
    with served.tab("run=1&step=7") as page:
        picture, sheet, file = (take(page, name) for name in ("Board as PNG", "Episode as CSV", "Page as HTML"))
        size = page.evaluate("[explorer.episode.board.canvas.width, explorer.episode.board.canvas.height]")
    assert picture.startswith(b"\x89PNG")
    assert [int.from_bytes(picture[at : at + 4], "big") for at in (16, 20)] == size
    entry, (trace, episode) = served.run(1), served.recorded(1)
    rows = list(csv.DictReader(io.StringIO(sheet.decode())))
    assert len(rows) == trace.length[episode]
    for step in range(0, len(rows), 17):
        shown = [float(rows[step][f"Q {name}"]) for name in entry.agent.task.actions]
        assert shown == pytest.approx(entry.agent.preferences(trace.states(episode)[step]).tolist(), abs=1e-9)
        assert rows[step]["action"] == entry.agent.task.actions[int(trace.action[step])]
    paid = trace.reward[trace.span(episode)]  # [steps, n]
    for group in ("ghosts", "fruits"):
        members = [j for j, advisor in enumerate(entry.agent.task.advisors) if advisor.group == group]
        shown = [float(row[f"paid {group}"]) for row in rows]
        assert shown == pytest.approx(paid[:, members].sum(axis=1).tolist())
    check_it_plays(browser, tmp_path, file, served)


INK = """async (bytes) => {
  const picture = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const colours = (from, width) => {
    const { data } = context.getImageData(from, 0, width, picture.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
    return seen.size;
  };
  const half = picture.width >> 1;
  return [picture.width, colours(0, half), colours(picture.width - half, half)];
}"""


def test_something_can_be_taken_away_from_every_view(served):
    entries, traces = [served.run(k) for k in range(2)], [served.recorded(k) for k in range(2)]
    with served.tab("view=compare&step=30") as page:
        boards, sheet = list(take(page, "Boards as PNG")), take(page, "Episodes as CSV")
        one = page.evaluate("explorer.compare.boards[0].canvas.width")
        width, left, right = page.evaluate(INK, boards)
        assert width > 2 * one  # both of them, and nothing of either is empty
        assert min(left, right) > 20
        rows = list(csv.DictReader(io.StringIO(sheet.decode())))
        assert [row["run"] for row in rows] == [
            f"{k + 1} {entries[k].name}"
            for k, (trace, episode) in enumerate(traces)
            for _ in range(trace.length[episode])
        ]
        served.go(page, "view=gallery&exhibit=two-goal")
        assert page.evaluate(INK, list(take(page, "Board as PNG")))[1] > 5
        assert take(page, "Episode as CSV").startswith(b"step,place,action")
        entries[1].evaluations = [{"steps": 100 * (e + 1), "score": 2.5 * e} for e in range(3)]
        try:
            page.reload()
            served.go(page, "view=learning")
            expect(page.locator(".charts h3")).to_have_text(["pac-boy"])
            assert page.evaluate(INK, list(take(page, "Curves as PNG")))[1] > 5
            rows = list(csv.DictReader(io.StringIO(take(page, "Curves as CSV").decode())))
        finally:
            entries[1].evaluations = []
        assert [(row["steps"], float(row["score"])) for row in rows] == [("100", 0), ("200", 2.5), ("300", 5)]
        served.go(page, "run=99", loaded=False)
        page.get_by_text("Export", exact=True).click()
        expect(page.get_by_text("There is nothing to save yet.")).to_be_visible()


def test_a_file_has_the_curves_of_its_own_runs_and_no_run_of_another_task(served):
    entries = list(served.explorer.library.entries.values())
    for entry in entries:
        entry.evaluations = [{"steps": 1, "score": 1.0}]
    try:
        with served.tab("run=2&other=0") as page:
            file = take(page, "Page as HTML").decode()
        inside = json.loads(re.search(r'id="embedded">(.*?)</script>', file)[1])
        answers = inside["answers"]
        assert [one["name"] for one in answers["runs"]["runs"]] == [entries[2].name]
        assert [curve["task"] for curve in answers["curves"]["curves"]] == [entries[2].task["name"]]
        assert len(served.explorer.library.curves()) == 3
    finally:
        for entry in entries:
            entry.evaluations = []


def check_it_plays(browser, folder, content, served):
    """Opened from the disc, with everything else out of reach."""
    path = folder / "episode.html"
    path.write_bytes(content)
    context = browser.new_context(offline=True)
    page = context.new_page()
    if DELAY:
        page.add_init_script(LATE.replace("DELAY", str(DELAY)))
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{path.as_uri()}#step=3&speed=16")
    page.wait_for_selector(DRAWN, state="attached")
    assert served.explorer.keys.token not in content.decode()
    page.keyboard.press("Space")
    until(page, "explorer.store.state.step > 8")
    page.keyboard.press("Space")
    page.get_by_label("Attractors").select_option("exact")
    expect(page.locator("#layer-text")).to_contain_text("exact egocentric values")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("2")
    expect(page.locator("main")).to_contain_text(re.compile(r"They (never )?diverge|Two runs are needed"))
    page.keyboard.press("4")
    expect(page.locator("main")).to_contain_text("needs the library")
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Why this action")).to_be_visible()
    expect(page.locator("#sentence")).to_have_text(re.compile(r"\.$"))
    context.close()
    assert complaints == []


def test_the_command_exports_a_file_that_plays(served, browser, tmp_path, agents, capsys):
    for name in ("egocentric", "empathic"):
        agents[name].save(tmp_path / name)
    folders = [str(tmp_path / name) for name in ("egocentric", "empathic")]
    assert main(["explore", *folders, "--export", str(tmp_path / "out.html")]) == 0
    assert "plays in any browser" in capsys.readouterr().out
    file = (tmp_path / "out.html").read_bytes()
    assert str(tmp_path).encode() not in file
    inside = json.loads(re.search(rb'id="embedded">(.*?)</script>', file)[1])
    assert [one["name"] for one in inside["answers"]["runs"]["runs"]] == ["egocentric", "empathic"]
    packed = [text for text in inside["answers"].values() if isinstance(text, str)]
    assert len(packed) == 4
    assert not any(str(tmp_path).encode() in gzip.decompress(base64.b64decode(text)) for text in packed)
    check_it_plays(browser, tmp_path, file, served)


def test_modules_are_small_and_fit_into_one(served):
    assert set(modules()) == {path.name for path in STATIC.glob("*.js")}
    for path in STATIC.glob("*.js"):
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 400
        assert text.startswith("// "), f"{path.name} does not say what it is for"
        for banned in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert banned not in text, f"{path.name} uses {banned}"
    script = one_script()
    assert "import " not in script
    names = re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)) > 100, "as one script no two modules may have a name in common"


def test_the_same_episode_makes_the_same_file(agents, tmp_path):
    for name in ("a", "b"):
        export({"jobs": agents["jobs"]}, tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_data_in_the_file_cannot_end_its_script(served):
    entry = served.run()
    name, entry.name = entry.name, "</script><script>alert(1)</script>"
    try:
        file = html(served.explorer.library, [entry.id], 0)
    finally:
        entry.name = name
    assert "</script><script>alert" not in file
    assert file.count("<script") == 2
