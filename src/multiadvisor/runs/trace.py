"""Traces: greedy games kept turn by turn in one small file, and played again exactly.

A file is one line of JSON, the header, and after it the arrays as safetensors, both under SHA-256; reading never runs
code. In a compiled world a turn is its state x, packed, and what the advisors are worth there follows from the agent's
tables; else the advice itself is kept. The games are those of `agent.evaluate(games, seeds=(seed,))`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

import numpy as np

from multiadvisor.errors import BadInput
from multiadvisor.explain import Explanation, explain, explain_advised
from multiadvisor.insight.games import CELLS
from multiadvisor.insight.stuck import ends_of_parts, resting
from multiadvisor.learner import Played
from multiadvisor.runs.pictures import Pictures, numbers_of
from multiadvisor.settings import Settings, whole_number
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.task import Task
from multiadvisor.theory.boards import has_tables
from multiadvisor.theory.learned import surroundings
from multiadvisor.version import VERSION
from multiadvisor.worlds.episode import Turn as Step
from multiadvisor.worlds.episode import episode, games_of

if TYPE_CHECKING:
    from multiadvisor.agent import Evaluation, MultiAdvisor

FORMAT = 1
KIND = "multiadvisor trace"
_FIRST = b'{"actions": ['
"""How every header begins: its keys are sorted."""
_LARGEST_HEADER = 16 << 20
_LONGEST_OBSERVATION = 64  # numbers that are kept of each turn


class Turn(NamedTuple):
    """One turn of a trace; after a game's last one there is a state, and nothing is done in it."""

    state: np.ndarray | None
    """The state x of a compiled world, else None."""
    action: int | None
    """As the environment numbers it."""
    explored: bool
    rewards: dict[str, float]
    """What the action brought to whom, where it is not zero."""
    names: tuple[str, ...] | None
    """Who was active [m], and ..."""
    advice: np.ndarray | None
    """... what they advised [m, A]; None where the agent's tables tell it from the state."""
    returns: dict[str, float] = {}  # noqa: RUF012
    """What each advisor was paid so far in this game, the turn itself included, where it is not zero."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Games turn by turn: T turns in G games, one after the other."""

    header: dict[str, Any]
    """Task, settings, seed, names: all that is no array."""
    turns: np.ndarray  # [G]
    finished: np.ndarray  # [G] bool: the game ended by itself
    action: np.ndarray  # [T] as the environment numbers them
    explored: np.ndarray  # [T] bool
    reward_turn: np.ndarray  # [R] the turn, counted through all games, of each reward that is not zero
    reward_advisor: np.ndarray  # [R]
    reward: np.ndarray  # [R]
    x: np.ndarray | None  # [T + G, size] states, the last of each game included; None for Python environments
    active: np.ndarray | None  # [T, n] bool; None where the agent's tables tell it
    advice: np.ndarray | None  # [active ones of all turns, A]
    observed: np.ndarray | None = None  # [T + G, d] the observations of a Python environment, where they are short
    pictures: Pictures | None = None

    def __len__(self) -> int:
        return len(self.turns)

    @property
    def names(self) -> tuple[str, ...]:
        """The advisors' names [n]."""
        return tuple(one["name"] for one in self.header["advisors"])

    @property
    def weights(self) -> np.ndarray:
        """The advisors' weights [n]."""
        return np.array([one["weight"] for one in self.header["advisors"]], float)

    @property
    def choice(self) -> np.ndarray:
        """The place of each action [T] among the header's."""
        return self.action - self.header.get("first_action", 0)

    @property
    def score(self) -> np.ndarray:
        """The score of each game [G]: the weighted rewards, summed in the order they came."""
        score, weights = np.zeros(len(self)), self.weights
        game = np.repeat(np.arange(len(self)), self.turns)[self.reward_turn]
        with np.errstate(over="ignore"):  # `MultiAdvisor.summary` refuses what does not add up
            np.add.at(score, game, weights[self.reward_advisor] * self.reward)
        return score

    @cached_property
    def _first(self) -> np.ndarray:
        """[G + 1] the first turn of each game, counted through all of them."""
        return np.concatenate([[0], np.cumsum(self.turns)])

    @cached_property
    def _first_advice(self) -> np.ndarray:
        """[T + 1] the first row of advice of each turn."""
        assert self.active is not None
        return np.concatenate([[0], np.cumsum(self.active.sum(axis=1))])

    def span(self, game: int) -> slice:
        """The turns of one game among those of all games."""
        if not 0 <= game < len(self):
            raise BadInput(f"there is no game {game}: {_count(len(self), 'game')} in the trace, counted from 0")
        return slice(int(self._first[game]), int(self._first[game + 1]))

    def states(self, game: int) -> np.ndarray:
        """All states x [turns + 1, size] of one game of a compiled world."""
        span = self.span(game)
        if self.x is None:
            raise BadInput(f"the trace of task {self.header['task']['name']!r} has advice instead of states")
        return self.x[span.start + game : span.stop + game + 1]

    def rewards(self, game: int) -> np.ndarray:
        """What each advisor was paid in each turn of one game [turns, n]."""
        span = self.span(game)
        paid, found = self._paid(span.start, span.stop), np.zeros((span.stop - span.start, len(self.names)))
        found[self.reward_turn[paid] - span.start, self.reward_advisor[paid]] = self.reward[paid]
        return found

    def returns(self, game: int) -> np.ndarray:
        """What each advisor was paid before each turn of one game, and in all of it [turns + 1, n]."""
        paid = self.rewards(game)
        return np.concatenate([np.zeros((1, paid.shape[1])), np.cumsum(paid, axis=0)])

    def _paid(self, first: int, last: int) -> slice:
        """The rewards of these turns, of which `last` is the first that no longer counts."""
        return slice(*np.searchsorted(self.reward_turn, [first, last]))

    def turn(self, game: int, turn: int) -> Turn:
        """One turn of one game, both counted from 0."""
        span = self.span(game)
        length, at = span.stop - span.start, span.start + turn
        if not 0 <= turn <= length:
            raise BadInput(f"there is no turn {turn}: game {game} ended after {_count(length, 'turn')}")
        state = None if self.x is None else self.x[at + game]
        if turn == length:
            return Turn(state, None, False, {}, None, None)
        paid, before = self._paid(at, at + 1), self._paid(span.start, at + 1)
        names = self.names
        rewards = {names[j]: float(r) for j, r in zip(self.reward_advisor[paid], self.reward[paid], strict=True)}
        so_far = np.bincount(self.reward_advisor[before], self.reward[before], len(names))
        returns = {names[j]: float(so_far[j]) for j in np.flatnonzero(so_far)}
        who = advice = None
        if self.active is not None and self.advice is not None:
            wishes = self.header["wishes"]
            who = tuple(wishes[j]["name"] for j in np.flatnonzero(self.active[at]))
            advice = self.advice[self._first_advice[at] : self._first_advice[at + 1]]
        return Turn(state, int(self.action[at]), bool(self.explored[at]), rewards, who, advice, returns)

    def played(self) -> Played:
        """The games as an evaluation gives them."""
        returns = np.zeros((len(self), len(self.names)))
        game = np.repeat(np.arange(len(self)), self.turns)[self.reward_turn]
        with np.errstate(over="ignore"):
            np.add.at(returns, (game, self.reward_advisor), self.reward)
        return Played(self.score, self.turns, self.finished.astype(np.int64), returns)

    def save(self, path: str | Path) -> None:
        """Write to a file, atomically."""
        write_trace(Path(path), self)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _kept(settings: Settings) -> dict[str, Any]:
    """Settings as a file gives them back: JSON has lists instead of tuples, and never equals them otherwise."""
    kept: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return kept


# ---- recording -------------------------------------------------------------------------------------------------------
_Given = ParamSpec("_Given")


def _alone(
    play: Callable[Concatenate[MultiAdvisor, _Given], Trace],
) -> Callable[Concatenate[MultiAdvisor, _Given], Trace]:
    """While a Python environment is played in, nobody else plays in it."""

    @functools.wraps(play)
    def alone(agent: MultiAdvisor, *given: _Given.args, **named: _Given.kwargs) -> Trace:
        adapter = agent.task.adapter
        with contextlib.nullcontext() if adapter is None else adapter.stage:
            return play(agent, *given, **named)

    return alone


@_alone
def record(
    agent: MultiAdvisor, games: int = 1, seed: int = 0, *, epsilon: float = 0.0, advice: bool | None = None,
    draws: int | None = None, longest: int | None = None,
) -> Trace:  # fmt: skip
    """The games that `agent.evaluate(games, seeds=(seed,))` plays, turn by turn; with `epsilon`, exploring ones.

    `advice` keeps every turn's advice as well; by default only where no table tells it from the state. `draws` is the
    seed of the agent whose random numbers the games use, by default its own: with the same `draws` and `seed` two
    agents play the same first game. Games are cut off after `longest` turns; by default they must end by themselves.

    >>> import multiadvisor as mad
    >>> agent = mad.MultiAdvisor(mad.make("three-fruits"), gamma=0.9).learn(20_000, progress=False)
    >>> trace = record(agent, games=2, seed=3)
    >>> trace.turns.tolist(), trace.turn(0, 0).state.tolist()
    ([10, 10], [12, 1, 1, 1])
    """
    if agent.task.continuous:
        raise BadInput(
            f"the actions of {agent.task.name!r} are real numbers, and a trace keeps a finite choice: leave it out"
        )
    if agent.task.goals is not None:
        raise BadInput(
            f"the advisors of {agent.task.name!r} point at other goals from turn to turn, which a trace does not keep: "
            "explain single turns, or make a video"
        )
    games, seed = whole_number("games", games, 1), whole_number("seed", seed)
    own = whole_number("draws", agent.settings.seed if draws is None else draws)
    task = agent.task
    if advice is None:
        advice = task.world is None or not has_tables(agent)
    apart = task.world is not None and agent.settings.deep is not None
    advisors = getattr(agent, "advisors", task.foci)
    turns: list[Step] = []
    lengths, states, explored = [], [], []
    active: list[np.ndarray] = []
    advised: list[np.ndarray] = []
    place = {focus.name: j for j, focus in enumerate(advisors)}

    def act(state: Any, draw: int) -> int:
        high, low = divmod(draw, 1 << 32)
        explored.append(high / (1 << 32) < epsilon)
        if advice:
            names, values = agent.advice(state)
            active.append(np.isin(np.arange(len(advisors)), [place[name] for name in names]))
            advised.append(np.asarray(values))
        if explored[-1]:
            return low * len(task.actions) >> 32
        return task.numbered(agent.act(state, low / (1 << 32)))

    source = games_of(task, own, seed, apart)
    for game in range(games):
        played = list(islice(episode(source, game, act), longest))
        turns += played
        states += [*(turn.state for turn in played), played[-1].after]
        lengths.append(len(played))
    last = np.cumsum(lengths) - 1
    rewards = [(k, int(j), float(r)) for k, turn in enumerate(turns)
               for j, r in zip(turn.advisors, turn.reward, strict=True) if r != 0]  # fmt: skip
    header = {
        "version": VERSION,
        "task": task.as_data(),
        "settings": _kept(agent.settings),
        "trained": int(getattr(agent, "turns", 0)),
        "seed": seed,
        "draws": own,
        "epsilon": float(epsilon),
        "actions": list(task.actions),
        "first_action": task.first_action,
        "advisors": [{"name": f.name, "group": f.group, "weight": float(f.weight)} for f in task.foci],
        "wishes": [{"name": f.name, "group": f.group, "weight": float(f.weight)} for f in advisors],
        "apart": apart,
        "sizes": None if task.world is None or task.world.sizes is None else list(task.world.sizes),
    }
    when, who, what = zip(*rewards, strict=True) if rewards else ((), (), ())
    return Trace(
        header=header, turns=np.array(lengths, np.int64), finished=np.array([turns[k].terminated for k in last], bool),
        action=np.array([task.first_action + turn.action for turn in turns], np.int64),
        explored=np.array(explored, bool), reward_turn=np.array(when, np.int64),
        reward_advisor=np.array(who, np.int64), reward=np.array(what, float),
        x=None if task.world is None else np.array(states, np.int64),
        active=np.array(active) if advice else None, advice=np.concatenate(advised) if advice else None,
        observed=_observed(states) if task.world is None else None,
    )  # fmt: skip


def _observed(observations: list[Any]) -> np.ndarray | None:
    """Observations as rows of numbers [T + G, d]; None where they are none, or long as pictures are."""
    try:
        found = np.array([numbers_of(one) for one in observations])
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 and 1 <= found.shape[1] <= _LONGEST_OBSERVATION else None


def record_evaluation(agent: MultiAdvisor, games: int, seed: int) -> tuple[Evaluation, Trace]:
    """`agent.evaluate` and the trace of the very same games."""
    if agent.settings.deep is not None:
        # a network's last bits depend on how many games it is asked about at once, so that only one of them can count
        trace = record(agent, games, seed)
        return agent.summary(trace.played()), trace
    seen, trace = agent.evaluate(games, seeds=(seed,)), record(agent, games, seed)
    same = np.array_equal(seen.played.score, trace.score) and np.array_equal(seen.played.turns, trace.turns)
    if not same:
        raise BadInput(f"task {agent.task.name!r} is not reproducible from the same seed: run check_task on it")
    return seen, trace


def _as_kept(trace: Trace, game: int) -> Callable[[Any, int], int]:
    """Whoever does what was done in a game."""
    choices = iter(trace.choice[trace.span(game)].tolist())
    return lambda state, draw: next(choices)


def replay(trace: Trace, task: Task) -> None:
    """Play the games again: the world, with its draws and the actions kept, must bring the same states and rewards."""
    name, mine = trace.header["task"]["name"], trace.header["task"]["fingerprint"]
    if task.fingerprint() != mine:
        raise BadInput(f"the trace is of task {name!r} with other advisors or options than the given {task.name!r}")
    source = games_of(task, trace.header["draws"], trace.header["seed"], trace.header.get("apart", False))
    for game, length in enumerate(trace.turns.tolist()):
        for turn, now in enumerate(episode(source, game, _as_kept(trace, game))):
            seen, last = trace.turn(game, turn), turn == length - 1
            paid = {task.names[j]: float(r) for j, r in zip(now.advisors, now.reward, strict=True) if r != 0}
            same = seen.state is None or np.array_equal(seen.state, now.state)
            same &= paid == seen.rewards and (now.over, now.terminated) == (last, last and bool(trace.finished[game]))
            if last and seen.state is not None:
                same &= np.array_equal(trace.states(game)[-1], now.after)
            if not same:
                raise BadInput(f"game {game} of the trace differs from task {name!r} from turn {turn} on")


def explain_turn(
    agent: MultiAdvisor, trace: Trace, game: int, turn: int, against: str | int | None = None
) -> Explanation:
    """Why the agent did what it did at one turn of its trace, rather than `against`, by default the next best."""
    task, kept = agent.task, trace.header
    own = (task.fingerprint(), _kept(agent.settings), getattr(agent, "turns", 0))
    if own != (kept["task"]["fingerprint"], kept["settings"], kept["trained"]):
        raise BadInput(f"the trace is of another agent, of task {kept['task']['name']!r}: record this one's own games")
    seen = trace.turn(game, turn)
    if seen.action is None:
        raise BadInput(
            f"nothing is done at turn {turn}: game {game} ended after {_count(turn, 'turn')}, counted from 0"
        )
    if seen.names is None or seen.advice is None:
        return explain(agent, seen.state, seen.action, against)
    here = None if seen.state is None else surroundings(agent, seen.state)
    found = explain_advised(agent, seen.names, seen.advice, seen.action, against, here, seen.state)
    return dataclasses.replace(found, stuck=stuck_at(trace, game, turn)) if here is None else found


def stuck_at(trace: Trace, game: int, turn: int) -> bool | None:
    """Whether a turn of a greedy game lies in a rest that lasted until the game was cut off; None if not known.

    Where there are no states, places are told apart by the advice given in them.
    """
    if trace.active is None or trace.advice is None or trace.header["epsilon"] > 0:
        return None
    if trace.finished[game]:
        return False
    span = trace.span(game)
    advised = slice(int(trace._first_advice[span.start]), int(trace._first_advice[span.stop]))
    advice = trace.advice[advised]
    if trace.header["settings"].get("deep") is not None:  # a network never gives the same value twice
        low, high = advice.min(axis=0), advice.max(axis=0)
        advice = np.floor((advice - low) / np.maximum(high - low, 1e-9) * CELLS)
    rows = np.split(advice, trace._first_advice[span.start + 1 : span.stop] - advised.start)
    keys = [(who.tobytes(), row.tobytes()) for who, row in zip(trace.active[span], rows, strict=True)]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    walk, length = np.array([places[key] for key in keys]), len(keys) - 1
    paid = slice(*np.searchsorted(trace.reward_turn, [span.start, span.stop]))
    gain = np.zeros(length + 1)
    np.add.at(
        gain, trace.reward_turn[paid] - span.start, trace.weights[trace.reward_advisor[paid]] * trace.reward[paid]
    )
    rest = resting(walk, trace.choice[span][:length], gain[:length], False, ends_of_parts(trace.active[span])[:length])
    return True if rest is not None and rest.until == length and turn >= rest.since else None


# ---- files -----------------------------------------------------------------------------------------------------------
def _smallest(array: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 on in the fewest bytes."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _packed(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, axis=-1)


def _is_bit(sizes: list[int] | None, size: int) -> np.ndarray:
    """[size] bool: the numbers of x that are 0 or 1, as fruits are."""
    return np.zeros(size, bool) if sizes is None else np.array(sizes) == 2


def _tensors(trace: Trace) -> dict[str, np.ndarray]:
    tensors = {
        "turns": _smallest(trace.turns), "finished": _packed(trace.finished), "action": _smallest(trace.choice),
        "explored": _packed(trace.explored), "reward_turn": _smallest(trace.reward_turn),
        "reward_advisor": _smallest(trace.reward_advisor), "reward": trace.reward,
    }  # fmt: skip
    if trace.x is not None:
        bits = _is_bit(trace.header["sizes"], trace.x.shape[1])
        numbers = trace.x[:, ~bits]
        tensors["positions"] = numbers if (numbers < 0).any() else _smallest(numbers)
        tensors["mask"] = _packed(trace.x[:, bits].astype(bool))
    if trace.active is not None and trace.advice is not None:
        tensors["active"], tensors["advice"] = _packed(trace.active), trace.advice
    if trace.observed is not None:
        tensors["observed"] = trace.observed
    return tensors | ({} if trace.pictures is None else trace.pictures.tensors())


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sealed(header: dict[str, Any]) -> bytes:
    return _canonical({**header, "sha256": _digest(_canonical(header))})


def check_place(path: Path) -> None:
    """Refuse a file that cannot be written before any game is played."""
    if path.is_dir():
        raise BadInput(f"cannot save the trace to {str(path)!r}: it is a folder, name a file")
    check_writable(path.parent)
    if path.exists() and not _replaceable(path):
        raise BadInput(f"{str(path)!r} already exists and is not a trace: name another file")


def _replaceable(path: Path) -> bool:
    """Whether a file is a trace, be it torn, or empty: of anything else the owner would miss it."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            line = file.readline(_LARGEST_HEADER)
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}, which would be replaced: {error.strerror}") from None
    return not line or _header(line) is not None or _is_torn(line)


def _header(line: bytes) -> dict[str, Any] | None:
    """What the first line of a file says of a trace; None where it is of none."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.get("kind") == KIND else None


def _is_torn(line: bytes) -> bool:
    """Whether a first line that is no header was going to be one, or was one."""
    if not line.startswith(_FIRST):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def write_trace(path: Path, trace: Trace) -> None:
    """Save, or leave what was there before."""
    from safetensors.numpy import save

    check_place(path)
    content = save({name: np.ascontiguousarray(array) for name, array in _tensors(trace).items()})
    values = {"bytes": len(content), "sha256": _digest(content)}
    write_atomically(path, _sealed({"format": FORMAT, "kind": KIND, **trace.header, "values": values}) + content)


def _parts(path: Path, damaged: BadInput) -> tuple[bytes, dict[str, Any], bytes]:
    """The first line of a trace, the header in it, and as many bytes as this one speaks of."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{str(path)!r} is not a trace but a folder or a device: name a file")
        with path.open("rb") as file:
            line = file.readline(_LARGEST_HEADER)
            header = _header(line)
            if header is None:
                foreign = f"{str(path)!r} is not a trace: multiadvisor evaluate RUN --trace FILE writes one"
                raise damaged if _is_torn(line) else BadInput(foreign)
            values = header.get("values")
            size = values.get("bytes") if isinstance(values, dict) else None
            # a file of another length was changed: it need not be read to know it, however long it is
            whole = isinstance(size, int) and len(line) + size == os.fstat(file.fileno()).st_size
            return line, header, file.read() if whole else b""
    except OSError as error:
        raise BadInput(f"cannot read the trace {str(path)!r}: {error.strerror}") from None


def read_trace(path: str | Path) -> Trace:
    """A trace from its file, or an error of one sentence: a torn or changed one is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    damaged = BadInput(f"the trace {str(path)!r} is damaged or was changed: record it again, or restore it from a copy")
    line, header, rest = _parts(Path(path), damaged)
    made_by = header.get("format")
    if isinstance(made_by, int) and made_by > FORMAT:
        raise BadInput(f"the trace {str(path)!r} was made by multiadvisor {header.get('version')}: upgrade to read it")
    header.pop("sha256", None)
    try:
        whole = _sealed(header)
    except (TypeError, ValueError):
        whole = b""
    values = header.get("values")
    if whole != line or not isinstance(values, dict) or _digest(rest) != values.get("sha256"):
        raise damaged
    try:
        return _decoded({k: v for k, v in header.items() if k not in ("format", "kind", "values")}, load(rest))
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError):
        raise damaged from None


def _decoded(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> Trace:
    """The trace that the arrays describe; any inconsistency raises."""
    whole = {k: tensors[k].astype(np.int64) for k in ("turns", "action", "reward_turn", "reward_advisor")}
    total, games, n = int(whole["turns"].sum()), len(whole["turns"]), len(header["advisors"])

    def bits(name: str, *shape: int) -> np.ndarray:
        flags = np.unpackbits(tensors[name], axis=-1, count=shape[-1]).astype(bool)
        if flags.shape != shape or not np.array_equal(_packed(flags), tensors[name]):
            raise ValueError(name)
        return flags

    x = active = advice = None
    if "positions" in tensors:
        size = len(header["sizes"]) if header["sizes"] is not None else tensors["positions"].shape[1]
        flags = _is_bit(header["sizes"], size)
        x = np.zeros((total + games, size), np.int64)
        if tensors["positions"].shape != x[:, ~flags].shape:
            raise ValueError("positions")
        x[:, ~flags], x[:, flags] = tensors["positions"], bits("mask", total + games, int(flags.sum()))
    if "advice" in tensors:
        active, advice = bits("active", total, len(header["wishes"])), tensors["advice"]
        if advice.shape != (active.sum(), len(header["actions"])):
            raise ValueError("advice")
    first = header.get("first_action", 0)
    if not isinstance(first, int) or not -(1 << 62) < first < 1 << 62:
        raise ValueError("first_action")
    whole["action"] += first
    trace = Trace(
        header=header, finished=bits("finished", games), explored=bits("explored", total), reward=tensors["reward"],
        x=x, active=active, advice=advice, observed=tensors.get("observed"),
        pictures=Pictures.decoded(tensors, total + games), **whole,
    )  # fmt: skip
    if trace.observed is not None and (trace.observed.ndim != 2 or len(trace.observed) != total + games):
        raise ValueError("observed")
    rewards = trace.reward_turn.shape == trace.reward_advisor.shape == trace.reward.shape
    if not (rewards and games > 0 and (trace.turns > 0).all() and len(trace.action) == total):
        raise ValueError("lengths")
    limits = ((trace.choice, len(header["actions"])), (trace.reward_turn, total), (trace.reward_advisor, n))
    if any(array.size and (array.min() < 0 or array.max() >= limit) for array, limit in limits):
        raise ValueError("range")
    if (np.diff(trace.reward_turn) < 0).any() or {"name", "options", "fingerprint"} - set(header["task"]):
        raise ValueError("order")
    if {"draws", "seed", "version", "trained"} - set(header) or "seed" not in header["settings"]:
        raise ValueError("header")
    if len(trace.names) != n or trace.weights.shape != (n,):
        raise ValueError("advisors")
    return trace
