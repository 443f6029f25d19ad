"""Wherever a network's values explain an action it is said that they are expectations; tables need no such word."""

import csv
import json

import pytest

import multiadvisor as mad
from command_line import typed
from multiadvisor.analysis.episode_report import report_on
from multiadvisor.analysis.episodes import play, record
from multiadvisor.analysis.moments import moments
from multiadvisor.explorer.bundle import describe
from multiadvisor.explorer.following import RunWatcher
from multiadvisor.explorer.insights import Albums, Insights
from multiadvisor.explorer.library import Library
from multiadvisor.runs.trace import explain_step
from multiadvisor.settings import CAVEAT
from multiadvisor.viz import plots

# which learns nothing: any values do
SMALL = {"hidden": (8,), "learning_starts": 1_000, "batch_size": 16, "buffer_size": 1_000}
KINDS = {
    "tables": ("CliffWalking-v1", {}, ""),
    "compiled": ("two-goal", {}, ""),
    "linear": ("three-fruits", {"learner": "linear"}, ""),
    "networks": ("CartPole-v1", {"learner": {"name": "dqn", **SMALL}}, CAVEAT),
    "networks of a compiled world": ("two-goal", {"learner": {"name": "dqn", **SMALL}}, CAVEAT),
    "actor": ("Pendulum-v1", {"learner": {"name": "sac", **SMALL}}, CAVEAT),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_place_says_it_of_networks_and_none_of_tables(name, tmp_path, capsys):
    (task, how, said), folder = KINDS[name], tmp_path / "run"
    limit = {"max_episode_steps": 30} if "Cliff" in task else {}
    agent = mad.MultiAdvisor(mad.make(task, **limit), **how).learn(20, progress=False)
    agent.save(folder)

    def out(*words):
        code, told, _ = typed(capsys, *words)
        assert code == 0
        return told

    texts = {
        "explain": str(agent.explain(state_of(agent))),
        "step": str(explain_step(agent, record(agent, 1), 0, 0)),
        "explain command": out("explain", folder, "--step", 0),
        "report": str(report_on(play(agent, 1))),
        "report command": out("evaluate", folder, "--episodes", 1, "--report"),
        "moments command": out("evaluate", folder, "--episodes", 1, "--moments", 1),
        "side by side": out("evaluate", folder, folder, "--episodes", 1, "--report").split("\n\n")[-1],
    }
    for place, text in texts.items():
        assert ("what networks expect" in text) == bool(said), (name, place)
        assert text.count(CAVEAT) == bool(said), (name, place)
    assert CAVEAT not in out("evaluate", folder, "--episodes", 1), "no explanation, no caveat"
    library = Library(episodes=1)
    library.add_folder(folder)
    (entry,) = library.entries.values()
    followed = RunWatcher(entry, folder)
    followed.tell(0)
    read = json.loads(out("evaluate", folder, "--episodes", 1, "--report", "--moments", 1, "--json"))
    if name in ("tables", "networks"):  # a margin below what the values miss is not quoted
        margins = [one["influence"]["margin"] for one in read["report"]["advisors"].values()]
        assert [margin is None for margin in margins] == [bool(said)] * len(margins)
    out("evaluate", folder, folder, "--episodes", 1, "--report", "--csv", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fields = {
        "explain": agent.explain(state_of(agent)).as_dict(),
        "explain command": json.loads(out("explain", folder, "--step", 0, "--json")),
        "report": read["report"], "page": describe(agent, "a"),
        "page's report": Insights(library, Albums(library)).of(entry.id),
        "page while it trains": followed.as_dict(0)["influence"][0], "csv": rows[0],
        **{f"moment {k}": one for k, one in enumerate(read["moments"])},
        **{f"own moment {k}": one.as_dict() for k, one in enumerate(moments(play(agent, 1), 1))},
    }  # fmt: skip
    assert {place: one["caveat"] for place, one in fields.items()} == dict.fromkeys(fields, said), name
    if not agent.task.continuous:
        figure = plots.one_axis(plots.explanation_bars, agent.explain(state_of(agent)))
        title = figure.axes[0].get_title().replace("\n", " ")
        plots.plt.close(figure)
        assert (CAVEAT in title) == bool(said), name


def state_of(agent):
    """The first state of an episode."""
    task = agent.task
    return task.initial_state() if task.world is not None else task.adapter.env.reset(seed=0)[0]
