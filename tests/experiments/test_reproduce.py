"""The report as a whole: the same bytes every time, also after kills; bad folders refused; a page that stands alone."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from shallow import make_shallow, ships

from multiadvisor.commands.reproduce import run
from multiadvisor.errors import BadInput
from multiadvisor.studies import reproduction, study_report
from multiadvisor.studies.claims import judge_all
from multiadvisor.studies.page import PAPER_LINK
from multiadvisor.studies.paper import dqn_clipped
from multiadvisor.studies.study import Plan, chosen, unique

pytestmark = pytest.mark.slow

TINY = Plan(
    what="all", seeds=2, epochs=2, transitions=1500, episodes=4, value_seeds=1, literal_seeds=1, value_epochs=1,
    boards=20, mdps=3, maze_epochs=1,
)  # fmt: skip
SMALL = replace(TINY, what="pac-boy", seeds=3)
MINE = ("machine.json", "runs")  # what may differ from one invocation to the next


def contents(folder):
    """Every file of a report with its hash."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in MINE
    }


@pytest.fixture(scope="module", autouse=True)
def _shallow():
    with pytest.MonkeyPatch.context() as patch:
        make_shallow(patch.setattr)
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce") / "report"
    return out, reproduction.reproduce(TINY, out, workers=0).as_dict()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("small") / "report"
    reproduction.reproduce(SMALL, out, workers=0)
    return out


def test_what_the_folder_holds(written):
    out, result = written
    names = set(contents(out))
    assert {"report.html", "report.md", "claims.json", "results.jsonl", "report.json", "poster.png"} <= names
    assert {"figures/pac-boy-score.svg", "figures/noise-score.svg", "figures/value-function-default.svg"} <= names
    assert {f"videos/{name}.{kind}" for kind in ("gif", "mp4") for name in
            ("egocentric-0.4", "egocentric-0.9", "agnostic-0.9", "empathic-0.9")} <= names  # fmt: skip
    rows = json.loads((out / "claims.json").read_text())
    assert len(rows) >= 45
    assert sum(result["claims"].values()) == len(rows)
    machine = json.loads((out / "machine.json").read_text())
    assert machine["stages"]["tabular runs"]["steps_per_second"] > 0
    assert machine["stages"]["tabular runs"]["done_now"] == machine["stages"]["tabular runs"]["jobs"]
    assert result["machine"] == machine


def test_what_is_exact_reproduces_however_short_the_runs(written):
    """The solver's claims do not depend on how long anything learns."""
    verdicts = {row["id"]: row["verdict"] for row in written[1]["judged"]}
    exact = ("theorem-2-with-its-premise", "theorem-3", "theorem-3-needs-all-goals",
             "stochastic-navigation", "theorem-4", "theorem-5", "two-goals", "three-fruits", "four-fruits",
             "max-sum-inversion", "egocentric-overestimates", "agnostic-local-is-global", "agnostic-beats-random",
             "agnostic-has-no-attractor", "bridges-are-avoided", "relaxed-bound", "random-player", "attractors-hold",
             "attractor-free-is-not-optimal")  # fmt: skip
    assert {name: verdicts[name] for name in exact} == dict.fromkeys(exact, "reproduced")
    partly = ("theorem-2", "randomness-does-not-help", "assumption-1-in-pac-boy", "every-action-can-be-cancelled")
    assert {name: verdicts[name] for name in partly} == dict.fromkeys(partly, "partly")
    assert verdicts["exact-values"] == "partly"  # at small gammas the optimal return is hardly ahead
    assert verdicts["empathic-is-near-optimal"] == "not reproduced"  # after 3,000 transitions nothing is
    assert "empathic-after-ten-epochs" not in verdicts


def test_a_report_can_be_read_again(written):
    out, result = written
    evidence = study_report.read_report(out)
    assert evidence.plan == TINY
    assert [one.as_dict() for one in judge_all(evidence) if one.judgement] == result["judged"]
    with pytest.raises(BadInput, match="no finished report"):
        study_report.read_report(out / "figures")


def test_experiments_are_discovered_in_the_reports_order():
    assert [study.name for study in chosen()] == [
        "pac-boy", "noise", "value-function", "attractors", "deviations", "videos",
    ]  # fmt: skip
    assert [study.name for study in chosen("noise")] == ["noise"]


def test_raw_results_hold_every_job_once(written):
    out, _ = written
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    jobs = unique(job for study in chosen() for job in study.jobs(TINY))
    assert [(line["kind"], line["config"]) for line in lines] == [(job.kind, job.config) for job in jobs]


def test_again_is_the_same_bytes_and_runs_nothing(small):
    out, before = small, contents(small)
    again = reproduction.reproduce(SMALL, out, workers=0)
    assert contents(out) == before
    assert {stage.get("done_now", 0) for stage in again.machine["stages"].values()} == {0}


class Links(HTMLParser):
    """Everything that a page points at, and its headings."""

    def __init__(self):
        super().__init__()
        self.followed, self.loaded, self.ids, self.pictures = [], [], [], 0

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.ids += [names["id"]] if "id" in names else []
        self.pictures += tag == "svg"
        links = [value for name, value in attributes if name in ("src", "href", "xlink:href", "srcset", "data")]
        (self.followed if tag == "a" else self.loaded).extend(links)


def test_the_page_stands_alone(written):
    out, _ = written
    text = (out / "report.html").read_text()
    page = Links()
    page.feed(text)
    assert page.followed.count(PAPER_LINK) == 1  # which a reader may follow
    assert all(link.startswith("#") for link in page.followed if link != PAPER_LINK)
    assert all(link.startswith(("#", "data:image/gif;base64,", "data:image/png;base64,")) for link in page.loaded)
    assert not re.search(r"<script|@import|url\((?!#)", text)
    assert page.pictures >= 12
    assert 'name="viewport"' in text
    for name in ("claims", "pac-boy", "attractors", "videos", "pac-boy-score", "theorem-5"):
        assert page.ids.count(name) == 1
    assert {link[1:] for link in page.followed + page.loaded if link.startswith("#")} <= set(page.ids)
    for name in re.findall(r"url\(#([^)]+)\)", text):
        assert page.ids.count(name) == 1, "two figures share a clip path"


def test_the_page_answers_first(written):
    """The verdicts as a bar, then the main figure as measured; then the scores, and the long list at the end."""
    out, result = written
    text = (out / "report.html").read_text()
    page = Links()
    page.feed(text)
    place = page.ids.index
    order = ("pac-boy-score", "pac-boy", "pac-boy-table", "noise", "claims", "made")
    assert sorted(order, key=place) == list(order)
    bar = re.search(r'<div class="bar" role="img" aria-label="(.+?)">', text)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in result["claims"].items())
    assert bar[1].startswith(counted)
    assert text.index("<h1>") < bar.start() < text.index("<nav>") < text.index('id="pac-boy-score"')
    assert page.followed == [*(f"#{study.name}" for study in chosen()), "#claims", "#made", PAPER_LINK]
    twin = (out / "report.md").read_text()
    order = ("pac-boy-score.svg", "### The scores", "## The claims", "## How this was made")
    assert sorted(order, key=twin.index) == list(order)
    assert PAPER_LINK in twin


def test_claims_stand_by_section_and_can_be_filtered(written):
    """Each verdict that occurs has a choice with its number, and each claim the class that the choice looks for."""
    out, _ = written
    judged = judge_all(study_report.read_report(out))
    text = (out / "report.html").read_text()
    for verdict, kind in (("reproduced", "yes"), ("partly", "half"), ("not reproduced", "no"), (None, "open")):
        count = sum(one.verdict == verdict for one in judged)
        assert text.count(f'class="is-{kind}"') == count
        assert (f'id="only-{kind}"' in text) == (count > 0)
        if count:
            assert re.search(rf'<label for="only-{kind}">[^<]* {count}</label>', text)
            assert f"#only-{kind}:checked ~ .place li:not(.is-{kind})" in text
    headings = re.findall(r'<div class="place"><h3>(.+?)<small>', text)
    assert headings == list(dict.fromkeys(one.claim.where[0].upper() + one.claim.where[1:] for one in judged))
    assert headings[:4] == ["Abstract", "Section 1", "Section 3", "Section 4.1"]


def test_both_twins_say_the_same(written):
    out, _ = written
    page, twin = (out / "report.html").read_text(), (out / "report.md").read_text()
    for row in json.loads((out / "claims.json").read_text()):
        assert row["claim"].replace("|", "\\|") in twin
        assert row["id"] in page
        assert f"{row['statistic']}<br>*reproduced if:* {row['test']} |".replace("|", "\\|")[:-2] in twin
        if row["verdict"] != "reproduced":
            assert row["explanation"] in twin
    for name in re.findall(r"!\[.*?\]\((.+?)\)", twin):
        assert (out / name).is_file()


def test_figures_say_what_was_shortened(written):
    out, _ = written
    page, twin = (out / "report.html").read_text(), (out / "report.md").read_text()
    for said in ("jobs with 1 of 50 epochs; 3 jobs with 1 of 500 epochs; ", "jobs with 2 of 50 epochs. For the full",
                 "What is called final is the mean of all 2 epochs.",
                 "2 seeds are few", f"<code>{dqn_clipped.shipped().about['command']}</code>"):  # fmt: skip
        assert said in page
    made = dqn_clipped.shipped()
    for text in (page, twin):
        assert f"DQN-clipped is not trained here: {len(made.runs)} seed" in text
        assert f"{made.about['command']}" in text


def test_the_summary_says_what_is_short_and_how_to_have_it_long(monkeypatch):
    monkeypatch.setattr(dqn_clipped, "available", lambda: True)
    ships(monkeypatch, 12)

    def said(what, full, seeds=None, epochs=None):
        return " ".join(study_report.paper_summary([], Plan.of(what, full, seeds, epochs), chosen(what)))

    assert "Shortened" not in said("all", True)
    assert "Shortened" not in said("noise", False)
    short = said("pac-boy", False)
    assert "DQN-clipped is not trained here: 3 seeds of 12 epochs, made by `make it` on Linux, device cpu, " in short
    assert "Shortened: 1 job with 12 of 50 epochs. For the full length give --full." in short
    assert "So few seeds" in short
    ships(monkeypatch, 50, 16)
    short = said("pac-boy", False)
    assert "not trained here: 16 seeds of 50 epochs" in short
    assert "Shortened" not in short
    assert "So few seeds" not in short
    short = said("all", True, 2, 1)
    assert "2 seeds of 1 epoch of 20,000" in short
    assert "jobs with 1 of 50 epochs. For" in short
    assert "For the full length leave out --epochs." in short
    assert '"partly" reproduced at most' in short


# ---- kills -----------------------------------------------------------------------------------------------------------
PROGRAM = f"""
import sys
from pathlib import Path
sys.path.append({str(Path(__file__).parent)!r})
from shallow import make_shallow, ships
from multiadvisor.studies import reproduction
from multiadvisor.studies.study import Plan
make_shallow()
reproduction.reproduce(Plan(**{asdict(SMALL)!r}), Path(sys.argv[1]), workers=0)
"""


def test_killed_at_any_moment_it_ends_with_the_same_bytes(small, tmp_path):
    whole, broken = small, tmp_path / "broken"
    kills = 0
    for pause in (1.0, 2.5, 4.0, 5.5):
        child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(broken)], start_new_session=True)
        time.sleep(pause)
        if child.poll() is None:
            kills += 1
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert kills >= 2
    subprocess.run([sys.executable, "-c", PROGRAM, str(broken)], check=True)
    assert contents(broken) == contents(whole)


def after_the_runs(whole, folder):
    """A folder in which everything has been run, and nothing is written of the report but its mark."""
    shutil.copytree(whole / "runs", folder / "report" / "runs")
    shutil.copy(whole / "report.json", folder / "report")
    return folder / "report"


def test_a_kill_in_the_middle_of_a_write_leaves_no_trace(small, tmp_path, monkeypatch):
    whole, out = small, after_the_runs(small, tmp_path)
    monkeypatch.setattr(study_report, "markdown", lambda page: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reproduction.reproduce(SMALL, out, workers=0)
    (out / ".report.md.abc.part").write_text("half a pa")
    (out / "figures" / ".x.svg.abc.part").write_text("<svg")
    monkeypatch.undo()
    reproduction.reproduce(SMALL, out, workers=0)
    assert contents(out) == contents(whole)


def test_a_kill_before_the_first_mark_is_no_foreign_folder(tmp_path):
    out = tmp_path / "report"
    out.mkdir()
    (out / ".report.json.abc.part").write_text('{"forma')
    reproduction.take_folder(out, SMALL)
    assert json.loads((out / "report.json").read_text())["plan"]["seeds"] == 3
    assert not list(out.glob(".*"))


# ---- bad folders -----------------------------------------------------------------------------------------------------
def refused(out, plan=SMALL):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} if out.is_dir() else None
    with pytest.raises(BadInput) as caught:
        reproduction.take_folder(out, plan)
    if before is not None:
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize(("name", "text", "said"), [
    ("thesis.tex", "mine", "holds no report"), ("report.json", "[1, 2]", "no mark of a report"),
    ("report.json", "{broken", "no mark of a report"),
])  # fmt: skip
def test_a_foreign_folder(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    assert said in refused(tmp_path)


def test_a_report_of_another_version_or_plan(tmp_path):
    reproduction.take_folder(tmp_path / "a", SMALL)
    assert "another seeds (3)" in refused(tmp_path / "a", replace(SMALL, seeds=4))
    mark = json.loads((tmp_path / "a" / "report.json").read_text())
    (tmp_path / "a" / "report.json").write_text(json.dumps({**mark, "version": "0.0.1"}))
    assert "version '0.0.1'" in refused(tmp_path / "a")


def test_a_file_or_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "is a file" in refused(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    assert "cannot write" in refused(tmp_path / "file" / "below")


def test_no_space_left(small, tmp_path, monkeypatch):
    """The disk fills up while the figures are written: one line, and the report is finished once there is room."""
    whole, out = small, after_the_runs(small, tmp_path)
    real = os.fsync
    left = [10]

    def full(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        reproduction.reproduce(SMALL, out, workers=0)
    monkeypatch.setattr(os, "fsync", real)
    reproduction.reproduce(SMALL, out, workers=0)
    assert contents(out) == contents(whole)


def test_plans_follow_the_flags():
    short, full = Plan.of("all"), Plan.of("all", full=True)
    assert (short.seeds, short.epochs, short.transitions) == (10, 50, 20_000)
    assert short.value_seeds < full.value_seeds == 20 == full.seeds
    assert (full.dqn_seeds, Plan.of("all", full=True, seeds=3).dqn_seeds) == (16, 3)
    assert Plan.of("all", seeds=3).value_seeds == 3
    assert (Plan.of("value-function").each, Plan.of("value-function").reading) == (range(5), "default")
    assert Plan.of("gm-sarsa").each == Plan.of("systems").each == range(1000, 1010)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("attractors --seeds 100000000", "seeds is 100000000: give an integer of at most 10000"),
        ("value-function --seeds 100000000", "seeds is 100000000: give an integer of at most 10000"),
        ("noise --epochs 100000000", "epochs is 100000000: give an integer of at most 100000"),
        ("noise --workers 100000000", "workers is 100000000: give an integer of at most 1024"),
        ("noise --seeds 0", "seeds is 0: give an integer of at least 2"),
        ("noise --seeds 1", "seeds is 1: give an integer of at least 2"),
        ("value-function --seeds 0", "seeds is 0: give an integer of at least 1"),
        ("value-function --first-seed -1", "first_seed is -1: give an integer of at least 0"),
        ("noise --workers -1", "workers is -1: give an integer of at least 0"),
    ],
)
def test_amounts_that_are_refused_before_anything_is_written(arguments, message, tmp_path):
    with pytest.raises(BadInput) as caught:
        run([*arguments.split(), "--out", str(tmp_path / "report")])
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())


def test_the_help_says_how_many_seeds_each_experiment_has(capsys):
    with pytest.raises(SystemExit):
        run(["--help"])
    assert "default10,with--full20;value-function5" in "".join(capsys.readouterr().out.split())  # wherever lines end
