"""The file of a trace, and what is in it: episodes step by step, in one small file.

A file is one line of JSON, the header, and after it the arrays as safetensors, both under SHA-256; reading never runs
code. `analysis.recording` records episodes, `runs.trace` plays them again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.envs.box_actions import BoxActions
from multiadvisor.errors import BadInput, short
from multiadvisor.learners.protocol import EpisodeReturns
from multiadvisor.storage.files import check_writable, write_atomically
from multiadvisor.storage.sealed import digest

FORMAT = 1
KIND = "multiadvisor trace"
_FIRST = b'{"actions": ['
"""How every header begins: its keys are sorted."""
_LARGEST_HEADER = 16 << 20


@dataclass(frozen=True, eq=False)
class Pictures:
    """A picture before each of the T steps in G episodes, and one after the last step of each."""

    content: tuple[bytes, ...]  # each once: PNG, or text in UTF-8
    of: np.ndarray  # [T + G] which of them

    def __getitem__(self, at: int) -> bytes:
        return self.content[int(self.of[at])]

    def tensors(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {
            "pictures": np.frombuffer(b"".join(self.content), np.uint8),
            "picture_ends": np.cumsum([len(one) for one in self.content]).astype(np.int64),
            "picture_of": self.of.astype(np.int32),
        }

    @classmethod
    def decoded(cls, tensors: dict[str, np.ndarray], count: int) -> Pictures | None:
        """From a file; any inconsistency raises."""
        if "pictures" not in tensors:
            return None
        content, ends, of = (tensors[name] for name in ("pictures", "picture_ends", "picture_of"))
        starts = np.concatenate([[0], ends[:-1]])
        if of.shape != (count,) or of.min() < 0 or of.max() >= len(ends) or (ends <= starts).any():
            raise ValueError("pictures")
        if ends[-1] != len(content) or content.dtype != np.uint8:
            raise ValueError("pictures")
        whole = content.tobytes()
        return cls(tuple(whole[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)), of.astype(np.int64))


class TracedStep(NamedTuple):
    """One step of a trace; after an episode's last one there is a state, and nothing is done in it."""

    state: np.ndarray | None
    """The state x of a compiled world, else None."""
    action: int | np.ndarray | None
    """As the environment numbers it; of continuous actions its own numbers [d]."""
    explored: bool
    rewards: dict[str, float]
    """What the action brought to whom, where it is not zero."""
    names: tuple[str, ...] | None
    """Who was active [m], and ..."""
    advice: np.ndarray | None
    """... what they advised [m, A]; None where the agent's tables tell it from the state. Of continuous actions what
    they expect of the action taken, and of the centre of the box."""
    returns: dict[str, float] = {}  # noqa: RUF012
    """What each advisor was paid so far in this episode, the step itself included, where it is not zero."""
    weights: np.ndarray | None = None
    """How loudly those who were active were heard [m]."""
    goals: np.ndarray | None = None
    """The places that they pointed at [m], where they point at any; below 0: none."""
    push: np.ndarray | None = None
    """Each one's share of the push at a continuous action [m]; NaN for the entropy."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Episodes step by step: T steps in G episodes, one after the other."""

    header: dict[str, Any]
    """Task, settings, seed, names: all that is no array."""
    length: np.ndarray  # [G] in steps
    terminated: np.ndarray  # [G] bool: the episode ended by itself
    action: np.ndarray  # [T] as the environment numbers them; of continuous actions its own numbers [T, d]
    explored: np.ndarray  # [T] bool
    reward_step: np.ndarray  # [R] the step, counted through all episodes, of each reward that is not zero
    reward_advisor: np.ndarray  # [R]
    reward: np.ndarray  # [R]
    x: np.ndarray | None  # [T + G, size] states, the last of each episode included; None for Python environments
    active: np.ndarray | None  # [T, n] bool; None where the agent's tables tell it
    advice: np.ndarray | None  # [active ones of all steps, A]
    observed: np.ndarray | None = None  # [T + G, d] the observations of a Python environment, where they are short
    pictures: Pictures | None = None
    taken: np.ndarray | None = None  # [T, d] continuous actions as they were chosen, each number from -1 to 1
    gain: np.ndarray | None = None  # [T] what each step added to the score, where it is not the weighted rewards
    heard: np.ndarray | None = None  # [active ones] the weights they were heard with, where not always their own
    goals: np.ndarray | None = None  # [active ones] the places that they point at, below 0: none
    push: np.ndarray | None = None  # [active ones] shares of the push at continuous actions; NaN: none

    def __len__(self) -> int:
        return len(self.length)

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
        """The place of each action [T] among the header's; of continuous ones what is done is the first choice."""
        if self.taken is not None:
            return np.zeros(len(self.taken), np.int64)
        counted: np.ndarray = self.action - self.header.get("first_action", 0)
        return counted

    @property
    def voice(self) -> np.ndarray | None:
        """What their own weights are multiplied by, [active ones], where it is not 1 throughout."""
        if self.heard is None or self.active is None:
            return None
        own = np.array([one["weight"] for one in self.header["wishes"]], float)[np.nonzero(self.active)[1]]
        found: np.ndarray = np.divide(self.heard, own, out=np.ones(len(own)), where=own != 0)
        return found

    def actions_of(self, episode: int) -> list[Any]:
        """What was done in one episode, as a source of episodes takes it: counted from 0, or numbers from -1 to 1."""
        span = self.span(episode)
        return self.choice[span].tolist() if self.taken is None else list(self.taken[span])

    def action_text(self, at: int) -> str:
        """What was done in a step, counted through all episodes, in words."""
        if self.taken is None:
            return str(self.header["actions"][int(self.choice[at])])
        numbers = zip(self.header["box"]["names"], self.action[at].tolist(), strict=True)
        return ", ".join(f"{name} {number:+.2f}" for name, number in numbers)

    @property
    def score(self) -> np.ndarray:
        """The score of each episode [G]: what its steps added, or the weighted rewards, summed in the order they
        came."""
        score, weights = np.zeros(len(self)), self.weights
        if self.gain is not None:
            np.add.at(score, np.repeat(np.arange(len(self)), self.length), self.gain)
            return score
        episode = np.repeat(np.arange(len(self)), self.length)[self.reward_step]
        with np.errstate(over="ignore"):  # `Evaluation.of` refuses what does not add up
            np.add.at(score, episode, weights[self.reward_advisor] * self.reward)
        return score

    @cached_property
    def first(self) -> np.ndarray:
        """[G + 1] the first step of each episode, counted through all of them."""
        return np.concatenate([[0], np.cumsum(self.length)])

    @cached_property
    def _first_advice(self) -> np.ndarray:
        """[T + 1] the first row of advice of each step."""
        assert self.active is not None
        return np.concatenate([[0], np.cumsum(self.active.sum(axis=1))])

    def rows(self, first: int, last: int) -> slice:
        """The rows of advice of these steps, counted through all episodes, of which `last` no longer counts."""
        return slice(int(self._first_advice[first]), int(self._first_advice[last]))

    def span(self, episode: int) -> slice:
        """The steps of one episode among those of all episodes."""
        if not 0 <= episode < len(self):
            raise BadInput(f"there is no episode {episode}: {count(len(self), 'episode')} in the trace, counted from 0")
        return slice(int(self.first[episode]), int(self.first[episode + 1]))

    def states(self, episode: int) -> np.ndarray:
        """All states x [steps + 1, size] of one episode of a compiled world."""
        span = self.span(episode)
        if self.x is None:
            raise BadInput(f"the trace of task {short(self.header['task']['name'])!r} has advice instead of states")
        return self.x[span.start + episode : span.stop + episode + 1]

    def rewards(self, episode: int) -> np.ndarray:
        """What each advisor was paid in each step of one episode [steps, n]."""
        span = self.span(episode)
        paid, found = self._paid(span.start, span.stop), np.zeros((span.stop - span.start, len(self.names)))
        found[self.reward_step[paid] - span.start, self.reward_advisor[paid]] = self.reward[paid]
        return found

    def returns(self, episode: int) -> np.ndarray:
        """What each advisor was paid before each step of one episode, and in all of it [steps + 1, n]."""
        paid = self.rewards(episode)
        return np.concatenate([np.zeros((1, paid.shape[1])), np.cumsum(paid, axis=0)])

    def _paid(self, first: int, last: int) -> slice:
        """The rewards of these steps, of which `last` is the first that no longer counts."""
        return slice(*np.searchsorted(self.reward_step, [first, last]))

    def step(self, episode: int, step: int) -> TracedStep:
        """One step of one episode, both counted from 0."""
        span = self.span(episode)
        length, at = span.stop - span.start, span.start + step
        if not 0 <= step <= length:
            raise BadInput(f"there is no step {step}: episode {episode} ended after {count(length, 'step')}")
        state = None if self.x is None else self.x[at + episode]
        if step == length:
            return TracedStep(state, None, False, {}, None, None)
        paid, before = self._paid(at, at + 1), self._paid(span.start, at + 1)
        names = self.names
        rewards = {names[j]: float(r) for j, r in zip(self.reward_advisor[paid], self.reward[paid], strict=True)}
        so_far = np.bincount(self.reward_advisor[before], self.reward[before], len(names))
        returns = {names[j]: float(so_far[j]) for j in np.flatnonzero(so_far)}
        action = int(self.action[at]) if self.taken is None else self.action[at]
        done = TracedStep(state, action, bool(self.explored[at]), rewards, None, None, returns)
        if self.active is None or self.advice is None:
            return done
        rows = self.rows(at, at + 1)
        spoke = [self.header["wishes"][j] for j in np.flatnonzero(self.active[at])]
        own = np.array([one["weight"] for one in spoke], float)
        weights = own if self.heard is None else self.heard[rows]
        return done._replace(
            names=tuple(one["name"] for one in spoke), advice=self.advice[rows], weights=weights,
            goals=None if self.goals is None else self.goals[rows], push=None if self.push is None else self.push[rows],
        )  # fmt: skip

    def played(self) -> EpisodeReturns:
        """The episodes as an evaluation gives them."""
        returns = np.zeros((len(self), len(self.names)))
        episode = np.repeat(np.arange(len(self)), self.length)[self.reward_step]
        with np.errstate(over="ignore"):
            np.add.at(returns, (episode, self.reward_advisor), self.reward)
        return EpisodeReturns(self.score, self.length, self.terminated.astype(np.int64), returns)

    def save(self, path: str | Path) -> None:
        """Write to a file, atomically."""
        write_trace(Path(path), self)


def count(number: int, what: str) -> str:
    """So many of something, in words."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# ---- files -----------------------------------------------------------------------------------------------------------
def _smallest(array: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 on in the fewest bytes."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _packed(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, axis=-1)


def _is_bit(sizes: list[int] | None, size: int) -> np.ndarray:
    """[size] bool: the numbers of x that are 0 or 1, as fruits are."""
    return np.zeros(size, bool) if sizes is None else np.array(sizes) == 2


_OPTIONAL = ("observed", "taken", "gain", "heard", "goals", "push")
"""Arrays that only some traces have, under their own names."""


def _tensors(trace: Trace) -> dict[str, np.ndarray]:
    tensors = {
        "length": _smallest(trace.length), "terminated": _packed(trace.terminated), "action": _smallest(trace.choice),
        "explored": _packed(trace.explored), "reward_step": _smallest(trace.reward_step),
        "reward_advisor": _smallest(trace.reward_advisor), "reward": trace.reward,
    }  # fmt: skip
    if trace.x is not None:
        bits = _is_bit(trace.header["sizes"], trace.x.shape[1])
        numbers = trace.x[:, ~bits]
        tensors["positions"] = numbers if (numbers < 0).any() else _smallest(numbers)
        tensors["mask"] = _packed(trace.x[:, bits].astype(bool))
    if trace.active is not None and trace.advice is not None:
        tensors["active"], tensors["advice"] = _packed(trace.active), trace.advice
    for name in _OPTIONAL:
        if (array := getattr(trace, name)) is not None:
            tensors[name] = array
    if trace.taken is not None:
        del tensors["action"]  # which follows from it
    if trace.goals is not None:  # values of a bank, which has them in single precision
        tensors["advice"], tensors["goals"] = tensors["advice"].astype(np.float32), trace.goals.astype(np.int32)
    return tensors | ({} if trace.pictures is None else trace.pictures.tensors())


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _sealed(header: dict[str, Any]) -> bytes:
    return _canonical({**header, "sha256": digest(_canonical(header))})


def check_place(path: Path) -> None:
    """Refuse a file that cannot be written before any episode is played."""
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
    values = {"bytes": len(content), "sha256": digest(content)}
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
        raise BadInput(
            f"the trace {str(path)!r} was made by multiadvisor {short(str(header.get('version')))}: upgrade to read it"
        )
    header.pop("sha256", None)
    try:
        whole = _sealed(header)
    except (TypeError, ValueError):
        whole = b""
    values = header.get("values")
    if whole != line or not isinstance(values, dict) or digest(rest) != values.get("sha256"):
        raise damaged
    try:
        return _decoded({k: v for k, v in header.items() if k not in ("format", "kind", "values")}, load(rest))
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError):
        raise damaged from None


def _decoded(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> Trace:
    """The trace that the arrays describe; any inconsistency raises."""
    whole = {k: tensors[k].astype(np.int64) for k in ("length", "reward_step", "reward_advisor")}
    total, episodes, n = int(whole["length"].sum()), len(whole["length"]), len(header["advisors"])

    def bits(name: str, *shape: int) -> np.ndarray:
        flags = np.unpackbits(tensors[name], axis=-1, count=shape[-1]).astype(bool)
        if flags.shape != shape or not np.array_equal(_packed(flags), tensors[name]):
            raise ValueError(name)
        return flags

    x = active = advice = None
    if "positions" in tensors:
        size = len(header["sizes"]) if header["sizes"] is not None else tensors["positions"].shape[1]
        flags = _is_bit(header["sizes"], size)
        x = np.zeros((total + episodes, size), np.int64)
        if tensors["positions"].shape != x[:, ~flags].shape:
            raise ValueError("positions")
        x[:, ~flags], x[:, flags] = tensors["positions"], bits("mask", total + episodes, int(flags.sum()))
    if "advice" in tensors:
        active, advice = bits("active", total, len(header["wishes"])), tensors["advice"]
        if advice.shape != (active.sum(), len(header["actions"])):
            raise ValueError("advice")
        if "goals" in tensors:
            advice = advice.astype(np.float64)
    optional: dict[str, Any] = {name: tensors.get(name) for name in _OPTIONAL}
    trace = Trace(
        header=header,
        terminated=bits("terminated", episodes),
        explored=bits("explored", total),
        reward=tensors["reward"],
        x=x,
        active=active,
        advice=advice,
        action=_actions(header, tensors),
        **whole,
        pictures=Pictures.decoded(tensors, total + episodes),
        **optional,
    )
    rows = None if advice is None else len(advice)
    lengths = {"observed": total + episodes, "taken": total, "gain": total, "heard": rows, "goals": rows, "push": rows}
    for name, length in lengths.items():
        array = getattr(trace, name)
        if array is not None and (len(array) != length or array.ndim != (2 if name in ("observed", "taken") else 1)):
            raise ValueError(name)
    rewards = trace.reward_step.shape == trace.reward_advisor.shape == trace.reward.shape
    if not (rewards and episodes > 0 and (trace.length > 0).all() and len(trace.action) == total):
        raise ValueError("lengths")
    limits = ((trace.choice, len(header["actions"])), (trace.reward_step, total), (trace.reward_advisor, n))
    if any(array.size and (array.min() < 0 or array.max() >= limit) for array, limit in limits):
        raise ValueError("range")
    if (np.diff(trace.reward_step) < 0).any() or {"name", "options", "identity"} - set(header["task"]):
        raise ValueError("order")
    if {"draws", "seed", "version", "trained"} - set(header) or "seed" not in header["settings"]:
        raise ValueError("header")
    if len(trace.names) != n or trace.weights.shape != (n,):
        raise ValueError("advisors")
    return trace


def _actions(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> np.ndarray:
    """The environment's actions [T] or [T, d]."""
    if "taken" in tensors:
        box, names = BoxActions.of_bounds(header["box"]), header["box"]["names"]
        if tensors["taken"].shape[1:] != (box.size,) or len(names) != box.size:
            raise ValueError("taken")
        return box.to_environment(tensors["taken"])
    first = header.get("first_action", 0)
    if not isinstance(first, int) or not -(1 << 62) < first < 1 << 62:
        raise ValueError("first_action")
    return tensors["action"].astype(np.int64) + first
