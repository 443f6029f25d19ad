"""The runs that are shown, each under an opaque id; what a page may ask for is here, and nothing else is reachable."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from multiadvisor.agent import MultiAdvisor, load_with_record
from multiadvisor.analysis.episodes import Episodes, record
from multiadvisor.envs.registry import PREFIX
from multiadvisor.errors import BadInput
from multiadvisor.explorer.answers import read_diagnosis
from multiadvisor.explorer.bundle import sends_table
from multiadvisor.explorer.curves import Record, curves, eval_every, label, sweep_records
from multiadvisor.runs.logs import are_evaluations
from multiadvisor.settings import whole_number
from multiadvisor.storage.checkpoint import read_header
from multiadvisor.storage.saved_agent import settings_of

_MOST_EPISODES = 100_000
LONGEST = 2000  # steps of an episode: more than anybody would watch


@dataclass
class Entry:
    """One run: loaded when it is first looked at, its episodes played when they are first asked for."""

    name: str
    folder: Path | None
    settings: dict[str, Any]
    task: dict[str, Any]
    evaluations: list[dict[str, Any]]
    loaded: MultiAdvisor | None = None
    eval_every: int | None = None
    """Steps between them, where that is known."""
    named: str | None = None
    traces: list[tuple[Episodes, int]] = field(default_factory=list)
    """Episodes of trace files, before those that are played here."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    lock: threading.Lock = field(default_factory=threading.Lock)
    episodes: dict[int, tuple[Episodes, int]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)
    """What was found out about this agent: another checkpoint begins with nothing."""

    def once(self, key: Any, find: Callable[[], Any]) -> Any:
        """What is found, looked for once for each checkpoint."""
        known = self.known
        if key not in known:
            known[key] = find()
        return known[key]

    @property
    def agent(self) -> MultiAdvisor:
        """The agent, read from its folder if it was not yet, or why it cannot be."""
        with self.lock:
            if self.loaded is None:
                assert self.folder is not None
                called = (self.task.get("name"), self.task.get("maker"))  # of several runs not all may be
                mine = self.named in called or str(self.named).removeprefix(PREFIX) in called
                self.loaded = load_with_record(self.folder, self.named if mine else None)[0]
            return self.loaded


def read_entry(folder: Path, name: str, named: str | None) -> Entry:
    """A saved run, of which all that the page lists is there; its values are read when they are looked at."""
    header = read_header(folder)
    try:
        settings, task, evaluations = header["settings"], header["task"], header["record"].get("evaluations", [])
        settings_of(folder, settings)
        if not isinstance(task["name"], str) or not isinstance(task["options"], dict):
            raise TypeError("task")
        if not are_evaluations(evaluations):
            raise TypeError("evaluations")
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"the checkpoint {str(folder)!r} lacks or misnames a field: {error}") from None
    every = eval_every(header["record"].get("schedule"))
    return Entry(name, folder, settings, task, evaluations, named=named, eval_every=every)


class Library:
    """All runs of one explorer, in the order given."""

    def __init__(self, episodes: int = 5, seed: int = 0, named: str | None = None) -> None:
        """`named`: a task that names a module, which the user allows to be imported."""
        if whole_number("episodes", episodes, 1) > _MOST_EPISODES:
            raise BadInput(f"episodes is {episodes}: that is too many to choose from, ask for at most {_MOST_EPISODES}")
        self.entries: dict[str, Entry] = {}
        self.episodes, self.seed, self.named = episodes, whole_number("seed", seed), named
        self.diagnoses: dict[str, tuple[str, str, dict[str, Any]]] = {}
        """Of anybody's policy: the file's name, what was diagnosed, and its card."""
        self.records: list[Record] = []
        """Of sweeps, which keep no agents."""
        self.played: int | None = None
        """The seed of all episodes' random numbers; None: the first run's."""
        self.skipped: list[str] = []
        """Why a run that lies in a folder with others is not shown, a sentence each."""

    # ---- adding --------------------------------------------------------------------------------------------------
    def add_folder(self, folder: Path, name: str | None = None) -> None:
        """A saved run, a folder of saved runs, a sweep, or what `multiadvisor diagnose` wrote."""
        if (found_diagnosis := read_diagnosis(folder)) is not None:
            self.diagnoses[secrets.token_urlsafe(9)] = (str(folder), *found_diagnosis)
            if not (folder / "agent.json").exists():  # a run may have its diagnosis beside it
                return
        if not (folder / "agent.json").exists() and folder.is_dir():
            self.records += (found := sweep_records(folder))
            below = sorted(path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/agent.json"))
            damaged: list[str] = []
            for path in below:
                try:
                    self.add_folder(path, str(path))
                except BadInput as error:
                    damaged.append(str(error))
            if damaged and len(damaged) == len(below) and not found:
                raise BadInput(damaged[0])
            self.skipped += damaged
            if below or found:
                return
        if folder.resolve() in [one.folder.resolve() for one in self.entries.values() if one.folder is not None]:
            self.skipped.append(f"{str(folder)!r} is named twice, and shown once")
            return
        entry = read_entry(folder, name or str(folder), self.named)
        if name is None:
            _ = entry.agent  # what was named must be whole; what lies in a folder is loaded when looked at
        self.entries[entry.id] = entry

    def add_agent(self, agent: MultiAdvisor, name: str, evaluations: list[dict[str, Any]] | None = None) -> Entry:
        """An agent that is not saved anywhere."""
        entry = Entry(name, None, dataclasses.asdict(agent.settings), agent.task.as_data(), evaluations or [], agent)
        self.entries[entry.id] = entry
        return entry

    def add_trace(self, trace: Episodes, name: str) -> None:
        """Episodes that were recorded: they join the run that played them."""
        for entry in self.entries.values():
            if trace.header["settings"] == entry.settings and trace.header["task"] == entry.task:
                entry.traces += [(trace, episode) for episode in range(len(trace))]
                return
        raise BadInput(f"the trace {name!r} was played by none of these runs: name the run it was recorded from")

    # ---- asking --------------------------------------------------------------------------------------------------
    def entry(self, name: str) -> Entry:
        """A run by its id."""
        if name not in self.entries:
            raise BadInput("there is no such run: reload the page")
        return self.entries[name]

    def record(self, name: str) -> Record:
        """A run of a sweep by its name."""
        for one in self.records:
            if one.name == name:
                return one
        raise BadInput("there is no such run: reload the page")

    @property
    def draws(self) -> int:
        """The seed of all episodes' random numbers, so that all runs play the same episodes."""
        return int(next(iter(self.entries.values())).settings["seed"] if self.played is None else self.played)

    def listing(self) -> dict[str, Any]:
        """What there is."""
        runs = [
            {
                "id": entry.id, "name": entry.name, "task": entry.task["name"],
                "label": label(entry.settings, entry.task["options"]),
                "episodes": [f"trace {k + 1}" for k in range(len(entry.traces))]
                + [f"seed {self.seed + k}" for k in range(self.episodes)],
            }
            for entry in self.entries.values()
        ]  # fmt: skip
        diagnosed = [
            {"id": key, "name": name, "task": task, "label": f"diagnosis of {task}", "episodes": [], "diagnosis": True}
            for key, (name, task, _) in self.diagnoses.items()
        ]
        return {"runs": runs + diagnosed}

    def recorded(self, name: str, episode: int) -> tuple[Episodes, int]:
        """An episode of a run."""
        entry = self.entry(name)
        count = len(entry.traces) + self.episodes
        if not 0 <= episode < count:
            raise BadInput(f"{entry.name} has {count} episodes here, and so no episode {episode + 1}")
        if episode < len(entry.traces):
            return entry.traces[episode]
        agent = entry.agent
        with entry.lock:
            if episode not in entry.episodes:
                number, advice = self.seed + episode - len(entry.traces), not sends_table(agent)
                entry.episodes[episode] = (
                    record(agent, 1, number, advice=advice, draws=self.draws, longest=LONGEST), 0
                )  # fmt: skip
            return entry.episodes[episode]

    def curves(self) -> list[dict[str, Any]]:
        """The learning curves of all runs and of the sweeps."""
        own = [
            Record(one.name, one.task["name"], one.task["options"], one.settings, one.evaluations, one.eval_every)
            for one in self.entries.values()
        ]
        return curves([*own, *self.records])

    def part(self, names: Sequence[str], episode: int) -> Library:
        """Some of the runs in one episode: numbered, and without where they lie, which is nobody's business."""
        found = Library(1, self.seed)
        found.played = self.draws
        for number, name in enumerate(names):
            entry, recorded = self.entry(name), self.recorded(name, episode)
            found.seed = max(self.seed + episode - len(entry.traces), 0)
            title = entry.name if entry.folder is None else entry.folder.name
            one = found.add_agent(entry.agent, title, entry.evaluations)
            one.eval_every, one.id = entry.eval_every, str(number)
            if episode < len(entry.traces):
                one.traces, found.episodes = [recorded], 0
            else:
                one.episodes[0] = recorded
        found.entries = {one.id: one for one in found.entries.values()}
        return found
