"""The learner for continuous actions: an actor that all advisors serve, and critics that say what each expects of it.

Several runs, which differ in their seeds alone, may learn in one program: their episodes, memories and networks are
stacked. `MultiAdvisor` uses one; studies on a GPU use many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from multiadvisor.core.aggregator import Aggregator, aggregator_of
from multiadvisor.core.rng import TRAINING, stream_key
from multiadvisor.core.validation import Arrays, Shapes, array, require, whole
from multiadvisor.envs.observation_encoder import encoder_of
from multiadvisor.envs.python_env import PythonEnv
from multiadvisor.envs.step import Step
from multiadvisor.envs.vector_env import VectorEnv
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.dqn.locked_rollout import LockedRollout
from multiadvisor.learners.dqn.network_state import kept, leaves_of, networks_of, part_of
from multiadvisor.learners.finite_choice import nobody
from multiadvisor.learners.protocol import (
    Advice,
    ComparedActions,
    Decision,
    EpisodeReturns,
    Exploration,
    Learner,
    not_finite,
    refuse_unobservable,
)
from multiadvisor.learners.sac.actor_critic import Layers, explored, forward, initial, means, slopes
from multiadvisor.learners.sac.packing import NetworkState
from multiadvisor.learners.sac.push import push_shares
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.learners.sac.sac_update import MODES, SeparateCritic, State, Twins, decomposed, heads_of, program
from multiadvisor.learners.sac.sac_update import Task as Weighed
from multiadvisor.learners.sac.transition_buffer import Columns, Memory
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task, Transition

_BLOCK = 256  # steps whose noise is drawn together
_BATCHES = 16  # calls of the update whose batches are drawn together
_ACTING, _LEARNING = 1 << 33, 1 << 34  # streams of a run
TAKEN, CENTRE, ENTROPY = "action taken", "centre of the box", "entropy"
"""What is compared where actions are real numbers, and what speaks beside the advisors."""
_SUM = "reward"  # what the only head of a plain critic values


class ActionValues(NamedTuple):
    """What the critics say of k actions in one state."""

    names: tuple[str, ...]  # [m] the active advisors
    weights: np.ndarray  # [m]
    values: np.ndarray  # [m, k] of each advisor, before weights
    entropy: np.ndarray  # [k] of the entropy to come; 0 where no critic tells it apart
    control: np.ndarray  # [k] what the actor follows
    slopes: np.ndarray  # [m, d] of the weighted values at the first action, each number of an action from -1 to 1


def make_sac(task: Task, settings: Settings, saved: Shapes | None) -> ContinuousLearner:
    """The learner of one run."""
    return ContinuousLearner(task, settings, saved=saved)


class ContinuousLearner(LockedRollout):
    """Learns with an actor and critics; S = len(seeds) runs side by side, all of them alike but for the seed."""

    def __init__(
        self, task: Task, settings: Settings, seeds: Sequence[int] | None = None, saved: Shapes | None = None
    ) -> None:
        """`saved`: of what shape the arrays are that will be restored, so that no memory is asked for others."""
        assert task.adapter is not None
        assert task.adapter.box is not None
        own = settings.learner_settings
        assert isinstance(own, SAC)
        self.task, self.settings, self.own = task, settings, own
        self.seeds = tuple(seeds) if seeds is not None else (settings.seed,)
        own.check_task(task, settings.gamma)
        self.critics = "one" if task.n == 1 and own.critics == "separate" else own.critics  # nothing to tell apart
        self.aggregator: Aggregator = aggregator_of(task, "sum")
        self.actions = task.adapter.box
        if saved is not None and not task.adapter.vector:
            require(saved.get("clock") == (len(self.seeds) * own.n_envs,), "clock")
        self.encoder = encoder_of(task)
        self.env = self._env()
        episodes = task.adapter.env.num_envs if task.adapter.vector else own.n_envs
        self.episodes_each, runs, d = episodes, len(self.seeds), self.actions.size
        self._activity = any(advisor.active is not None for advisor in task.advisors)
        ends = any(advisor.ended is not None for advisor in task.advisors)
        self.columns = Columns(int(np.prod(self.encoder.shape)), d, task.n, ends, self._activity)
        if saved is not None:
            require(saved.get("replay table", ())[2:] == (self.columns.width,), "replay table")
            layers = {shape[-2:] for name, shape in saved.items() if name.startswith("network ")}
            require({*pairwise((self.columns.features, *own.hidden))} <= layers, "network")
        self._scale = np.float32(self.encoder.scale)
        self._program = program(replace(own, critics=self.critics), self.columns, runs)
        actor, critic, beside = self._networks()
        self._axes = int(runs > 1)  # in front of each array of a state
        self._state = NetworkState(self._program.start(actor, critic), self._axes)
        self._beside: NetworkState | None = None
        self.beside = self._program.start_beside(beside) if beside else None
        self.weighed = self._weigh(task)
        self.memory = Memory(self.columns, runs, own.buffer_size)
        self.updates = 0
        self._loss: tuple[Any, int] | None = None  # of the last updates, summed, and how many these were
        self.rounds = 0  # of all episodes together: which noise is next
        self._noise: tuple[int, np.ndarray, np.ndarray] = (-1, np.zeros(0), np.zeros(0))
        self._batches: tuple[int, np.ndarray, np.ndarray] = (-1, np.zeros(0), np.zeros(0))
        self._clock = np.zeros(runs * episodes, np.int64)  # steps of each episode
        self._tally = np.zeros((runs * episodes, 3))  # score of this episode, episodes done, their scores summed
        self._keys = [int(stream_key(seed, TRAINING, _ACTING)) for seed in self.seeds]
        self._batch_keys = [int(stream_key(seed, TRAINING, _LEARNING)) for seed in self.seeds]
        self._opened = self._watching = False
        self.exploration = Exploration()
        self._see()

    def _networks(self) -> tuple[Layers, Twins, Twins]:
        """Fresh ones, for each run from a generator of its own."""
        columns, mode, own = self.columns, MODES[self.critics], self.own
        seen = columns.features + columns.dimensions

        def one(seed: int) -> tuple[Layers, Twins, Twins]:
            draw = [np.random.default_rng([seed, 0x5AC, part]) for part in range(4)]
            heads = heads_of(mode.control, columns.advisors)
            beside = () if mode.beside is None else (heads_of(mode.beside, columns.advisors),)
            return (
                initial(draw[0], columns.features, own.hidden, 2 * columns.dimensions),
                tuple(initial(draw[1 + twin], seen, own.hidden, heads) for twin in range(2)),
                tuple(initial(draw[3], seen, own.hidden, count) for count in beside),
            )

        made = [one(seed) for seed in self.seeds]
        if len(made) == 1:
            return made[0]
        stacked: tuple[Layers, Twins, Twins] = jax.tree.map(lambda *leaves: np.stack(leaves), *made)
        return stacked

    def _weigh(self, task: Task) -> Weighed:
        gamma = self.settings.gamma
        if self.critics == "one" and task.n == 1 and not task.weights[0]:
            raise BadInput(f"advisor {task.names[0]!r} is the only one, and its weight is 0: give it another weight")
        parts = (task.weights, task.gammas(gamma), gamma)
        return Weighed(*(jnp.asarray(part, jnp.float32) for part in parts))  # at hand, as they seldom change

    def _env(self) -> PythonEnv | VectorEnv:
        task, own = self.task, self.own
        assert task.adapter is not None
        if task.adapter.vector:
            if len(self.seeds) > 1 or own.n_envs != 1:
                raise BadInput("a vector environment has its own number of episodes and one run: leave envs out")
            return VectorEnv(task, self.seeds[0], self.encoder)
        envs = task.adapter.copies(len(self.seeds) * own.n_envs)
        seeds = [(seed, episode) for seed in self.seeds for episode in range(own.n_envs)]
        return PythonEnv(task, envs, seeds, self.encoder)

    # ---- what was learned --------------------------------------------------------------------------------------------
    def last_losses(self) -> dict[str, float]:
        """The mean loss of critics and actor in the first run's last updates; empty before the first."""
        return {} if self._loss is None else {"critics and actor": float(np.ravel(self._loss[0])[0]) / self._loss[1]}

    @property
    def steps(self) -> int:
        """Transitions learned from, in each run."""
        return self.memory.seen

    @property
    def episodes(self) -> int:
        """Episodes played to their end, in the first run."""
        return int(self._tally[: self.episodes_each, 1].sum())

    @property
    def score_sum(self) -> float:
        """The scores of those episodes together."""
        return float(self._tally[: self.episodes_each, 2].sum())

    @property
    def advisors(self) -> tuple[Advisor, ...]:
        """The task's, or one for everything where no critic tells them apart."""
        return (Advisor(_SUM),) if self._alone_valued else self.task.advisors

    @property
    def _alone_valued(self) -> bool:
        return self.critics == "one" and self.task.n > 1

    @property
    def tells_entropy(self) -> bool:
        """Whether some critic tells what is expected of the entropy to come."""
        mode = MODES[self.critics]
        return decomposed in (mode.control, mode.beside)

    @property
    def state(self) -> State:
        """Actor, critics and what their update needs, as NumPy arrays."""
        found: State = self._state.tree()
        return found

    @state.setter
    def state(self, state: State) -> None:
        self._state = NetworkState(state, self._axes)

    @property
    def beside(self) -> SeparateCritic | None:
        """The critic beside, where there is one."""
        return self._beside.tree() if self._beside else None

    @beside.setter
    def beside(self, beside: SeparateCritic | None) -> None:
        self._beside = NetworkState(beside, self._axes) if beside else None

    def _see(self) -> None:
        """Take a copy of the actor for acting: the original's memory is given away at the next update."""
        alone = None if len(self.seeds) == 1 else ...  # an axis for the only run
        leaves = self._state.first(2 * (1 + len(self.own.hidden)))  # weights and biases by steps
        self.actor: Layers = tuple((np.array(leaves[k])[alone], leaves[k + 1][alone]) for k in range(0, len(leaves), 2))

    def _own(self, networks: Any, run: int = 0) -> Any:
        """One run's networks, as NumPy arrays."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[run] if len(self.seeds) > 1 else np.asarray(leaf), networks)

    def _row(self, state: Any) -> np.ndarray:
        """One observation [F] as the networks see it."""
        return self.encoder.convert(state).astype(np.float32) * self._scale

    def choose(self, state: Any, run: int = 0) -> np.ndarray:
        """The actor's own action in one state, [d] from -1 to 1."""
        found: np.ndarray = means(tuple((w[run], b[run]) for w, b in self.actor), self._row(state)[None])[0]
        return found

    def judge(self, state: Any, actions: np.ndarray, run: int = 0) -> ActionValues:
        """What the critics say of actions [k, d], each number from -1 to 1."""
        seen = np.concatenate([np.repeat(self._row(state)[None], len(actions), axis=0), actions], axis=1)
        twins = self._own(self.state.critic.networks, run)
        told = [forward(twin, seen) for twin in twins]  # [k, H] each
        task, kind = self.task, MODES[self.critics]
        active = self.env.active_in(state).astype(bool) if self._activity else np.ones(task.n, bool)
        mix = np.append(task.weights * active, 1.0) if kind.control is decomposed else np.ones(1)
        sums = np.stack([each @ mix for each in told])  # [2, k]
        chosen, lower = told, sums.argmin(axis=0)
        if kind.beside is not None:
            assert self.beside is not None
            (beside,) = self._own(self.beside.critic.networks, run)
            chosen, lower, twins = [forward(beside, seen)], np.zeros(len(actions), int), (beside,)
        values = np.stack([chosen[twin][k] for k, twin in enumerate(lower)]).T.astype(np.float64)  # [H, k]
        slope = slopes(twins[lower[0]], seen[0])[:, self.columns.features :]  # [H, d]
        control = sums.min(axis=0).astype(np.float64)
        if len(values) == 1:
            name, weights = ((_SUM,), np.ones(1)) if self._alone_valued else (task.names, task.weights)
            return ActionValues(name, weights, values / weights[:, None], np.zeros(len(actions)), control, slope)
        keep, weights = np.flatnonzero(active), task.weights[active]
        return ActionValues(tuple(task.names[j] for j in keep), weights, values[keep], values[-1], control,
                      weights[:, None] * slope[keep])  # fmt: skip

    def consult(self, state: Any) -> Advice:
        """The active advisors' values of the actor's own action, [m, 1]."""
        told = self.judge(state, self.choose(state)[None])
        names = [advisor.name for advisor in self.advisors]
        advisors = np.array([names.index(name) for name in told.names], np.int64)
        return Advice(told.names, told.values, told.weights, advisors)

    def preferences(self, state: Any) -> np.ndarray:
        """What the actor follows, of its own action [1]."""
        return self.judge(state, self.choose(state)[None]).control

    def aggregator_at(self, state: Any) -> Aggregator:
        """They are summed."""
        return self.aggregator._replace(of=self.aggregator.of[self.consult(state).advisors])

    def values(self, j: int) -> np.ndarray:
        """There is no table."""
        raise BadInput("critics have no table of values: ask for the advice in a state")

    # ---- what is decided ---------------------------------------------------------------------------------------------
    @property
    def choices(self) -> tuple[str, ...]:
        """The action taken is compared with the centre of the box."""
        return (TAKEN, CENTRE)

    @property
    def asked(self) -> tuple[Advisor, ...]:
        """The advisors, and what is expected of the entropy, where a critic tells it."""
        names = [advisor.name for advisor in self.advisors]
        entropy = Advisor(ENTROPY if ENTROPY not in names else f"{ENTROPY} of the actor")
        return (*self.advisors, *((entropy,) if self.tells_entropy else ()))

    @property
    def combined(self) -> Aggregator:
        """All of them are summed."""
        return self.aggregator._replace(of=np.zeros(len(self.asked), np.int64))

    def decide(self, state: Any, draw: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """The actor's own action, compared with the centre of the box."""
        if epsilon:
            raise BadInput(
                f"epsilon is for a finite choice, and actions of {self.task.name!r} are real numbers: leave it"
            )
        action = self.choose(state)
        if not values:
            return Decision(action, 0, False, *nobody(len(self.choices)))
        return self._compared(state, action, np.zeros_like(action))

    def compare(self, state: Any, action: Any = None, against: Any = None) -> Decision:
        """An action, by default the actor's own, compared with another, by default the centre of the box."""
        box = self.actions
        mine = self.choose(state) if action is None else box.from_environment(action, "action")
        other = np.zeros(box.size, np.float32) if against is None else box.from_environment(against, "against")
        return self._compared(state, mine, other)

    def _compared(self, state: Any, mine: np.ndarray, other: np.ndarray) -> Decision:
        box, told = self.actions, self.judge(state, np.stack([mine, other]))
        names = [advisor.name for advisor in self.advisors]
        who, values, weights = [names.index(name) for name in told.names], told.values, told.weights
        push = push_shares(told.slopes)[0]
        if self.tells_entropy:
            who, weights, push = [*who, len(names)], np.append(weights, 1.0), np.append(push, np.nan)
            values = np.concatenate([values, told.entropy[None]])
        pair = ComparedActions(box.to_environment(mine), box.to_environment(other), float(told.control[0]), told.slopes)
        return Decision(mine, 0, False, np.array(who, np.int64), values, weights, None, push, pair)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The actor's action, an array in the environment's own form."""
        return self.actions.to_environment(self.explore(state) if explore else self.choose(state))

    def epsilon_now(self) -> float:
        """Exploration is the actor's own noise."""
        return 0.0

    def judge_actions(self, state: Any, actions: Any) -> Advice:
        """The active advisors' values [m, k] of actions [k, ...] of the environment's."""
        told = self.judge(state, np.stack([self.read_action("an action", each) for each in actions]))
        names = [advisor.name for advisor in self.advisors]
        who = np.array([names.index(name) for name in told.names], np.int64)
        return Advice(told.names, told.values, told.weights, who)

    def read_action(self, name: str, action: Any) -> np.ndarray:
        """One of the environment's actions, each number from -1 to 1."""
        return self.actions.from_environment(action, name)

    def refuses_weights(self) -> str:
        """The critics value the weighted sum; the replay buffer keeps the terms apart."""
        return "weights are in the values it learned"

    def reweighted(self, task: Task, anew: bool) -> Learner:
        """It goes on itself, from the same replay buffer."""
        self.reweight(task, anew)
        return self

    def reweight(self, task: Task, anew: bool) -> None:
        """Go on with other weights: the memory keeps the terms apart, so that nothing in it is out of date.

        `anew`: where a critic beside values the advisors, the one that the actor follows begins again as their weighted
        sum; its twins are the critic and its slower target, lest they stay the same for ever.
        """
        self.weighed = self._weigh(task)
        self.task = self.env.task = task
        if not anew or self.beside is None:
            return
        mix = np.append(task.weights, 1.0).astype(np.float32)  # [n + 1]

        def collapsed(heads: Layers) -> Layers:
            *before, (weight, bias) = jax.tree.map(np.asarray, heads)
            return (*before, ((mix @ weight)[..., None, :], (bias @ mix)[..., None]))

        twins = collapsed(self.beside.critic.networks[0]), collapsed(self.beside.target[0])
        fresh = self._program.start_beside(twins)
        self.state = self.state._replace(critic=fresh.critic, target=fresh.target)

    # ---- learning ----------------------------------------------------------------------------------------------------
    def _times(self) -> np.ndarray:
        return self._clock

    def _begin(self) -> None:
        self._tally[:, 0] = 0.0

    def _drawn(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Of one step: standard normal noise, and actions by chance; [S, episodes, d] each."""
        block, place = divmod(step, _BLOCK)
        if self._noise[0] != block:
            shape = (_BLOCK, self.episodes_each, self.columns.dimensions)
            parts = []
            for key in self._keys:
                generator = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, block]))
                normal = generator.standard_normal(shape, np.float32)
                parts.append((normal, generator.random(shape, np.float32) * 2 - 1))
            normal, uniform = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
            self._noise = (block, normal, uniform)
        return self._noise[1][place], self._noise[2][place]

    def _exploring(self, observation: np.ndarray, step: int) -> np.ndarray:
        """The actions [S, episodes, d] that learning takes for observations [S, episodes, F]."""
        noise, chance = self._drawn(step)
        if self.steps < self.own.learning_starts:
            return chance[:, : observation.shape[1]]
        with np.errstate(all="ignore"):  # what is not finite is told below
            action = explored(self.actor, observation, noise[:, : observation.shape[1]])
        if not np.isfinite(action).all():
            raise Diverged(
                f"the actor's action is no longer finite ({self.steps} steps): lower the learning rate, or look for an "
                "observation that is not finite"
            )
        return action

    def _run(self, steps: int) -> None:
        runs, until = len(self.seeds), self.steps + steps
        while self.steps < until:
            before = self.current.astype(np.float32).reshape(runs, self.episodes_each, -1) * self._scale
            actions = self._exploring(before, self.rounds).astype(np.float32)
            step, arrived = self._step(actions.reshape(-1, self.columns.dimensions))
            self._remember(step, before, actions, arrived)
            self.rounds += 1
            self._catch_up()

    def _remember(self, step: Step, before: np.ndarray, actions: np.ndarray, arrived: np.ndarray) -> None:
        """Keep a step of every episode: `before` [S, episodes, F], `actions` [S, episodes, d], `arrived` [N, F]."""
        columns, shape = self.columns, before.shape[:2]
        played = ~step.begun
        if not np.isfinite(step.reward[played]).all():
            wrong = np.argwhere(~np.isfinite(step.reward) & played[:, None])[0, 1]
            # the episodes have gone on and the memory has not: what was saved before is better
            raise Diverged(str(not_finite(self.task.advisors[wrong])))
        rows = np.empty((*shape, columns.width), np.float32)
        columns.observation(rows)[...] = before
        columns.next_observation(rows)[...] = arrived.reshape(*shape, -1) * self._scale
        columns.action(rows)[...] = actions
        columns.reward(rows)[...] = step.reward.reshape(*shape, -1)
        columns.terminated(rows)[...] = step.terminated.reshape(*shape, 1)
        if columns.ends:
            columns.ended(rows)[...] = (step.ended | step.terminated[:, None]).reshape(*shape, -1)
        if columns.activity:
            columns.active(rows)[...] = step.advisors.reshape(*shape, -1)
            columns.next_active(rows)[...] = step.next_advisors.reshape(*shape, -1)
        self.memory.add(rows if played.all() else rows[:, played])
        self._clock += played
        with np.errstate(over="ignore"):
            self._tally[:, 0] += np.where(played, step.reward @ self.task.weights, 0.0)
        if step.over.any():
            over = step.over & played
            self._tally[over, 2] += self._tally[over, 0]
            self._tally[over, 1] += 1
            self._tally[over, 0] = 0.0

    def _due(self) -> int:
        """How many updates so many steps bring."""
        own, steps = self.own, self.steps
        due = max(steps - own.learning_starts, 0) // own.train_freq if steps >= own.batch_size else 0
        return due - due % own.updates_at_once

    def _catch_up(self) -> None:
        due = self._due()
        while self.updates < due:
            self._learn()

    def _sampling(self, call: int) -> tuple[np.ndarray, np.ndarray]:
        """Of one call of the update: numbers in [0, 1) [S, K, B], and standard normal noise [S, K, 2, B, d]."""
        block, place = divmod(call, _BATCHES)
        if self._batches[0] != block:
            front, batch, d = (_BATCHES, self.own.updates_at_once), self.own.batch_size, self.columns.dimensions
            parts = []
            for key in self._batch_keys:
                generator = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, block]))
                chance = generator.random((*front, batch))
                parts.append((chance, generator.standard_normal((*front, 2, batch, d), np.float32)))
            chance, normal = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
            self._batches = (block, chance, normal)
        return self._batches[1][place], self._batches[2][place]

    def _learn(self) -> None:
        count = self.own.updates_at_once
        chance, drawn = self._sampling(self.updates // count)
        rows = self.memory.rows((chance * self.memory.filled).astype(np.int64))
        if len(self.seeds) == 1:
            rows, drawn = rows[0], drawn[0]
        rates = np.array(self.own.rates(self.updates), np.float32)
        kept = self._state
        kept.packed, loss = self._program.update(kept.layout, kept.packed, self.weighed, rows, drawn, rates)
        losses = [loss, *self._value(rows, drawn, rates)]
        self._loss = losses[0], count
        self.updates += count
        self._see()
        if not all(np.isfinite(np.asarray(loss)).all() for loss in losses):
            raise Diverged(
                f"the loss of the critics is no longer finite ({self.steps} steps): lower the learning rate, or look "
                "for an observation that is not finite"
            )

    def _value(self, rows: np.ndarray, drawn: np.ndarray, rates: np.ndarray) -> list[Any]:
        """Every so many updates, one of the critic beside: a program of its own, lest the other be disturbed."""
        kept, state = self._beside, self._state
        if kept is None:
            return []
        due = np.flatnonzero((self.updates + np.arange(self.own.updates_at_once)) % self.own.advisors_train_freq == 0)
        if not len(due):
            return []
        axis = 0 if len(self.seeds) == 1 else 1
        parts = (np.take(rows, due, axis=axis), np.take(drawn, due, axis=axis), rates[due])
        kept.packed, loss = self._program.value(
            state.layout, kept.layout, state.packed, kept.packed, self.weighed, *parts
        )
        return [loss]

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def explore(self, state: Any) -> Any:
        """The action that learning would take in one state, [d] from -1 to 1."""
        seen = np.repeat(self._row(state)[None, None], len(self.seeds), axis=0)
        return self._exploring(seen, self.exploration.step(self.rounds))[0, 0]

    def observe(self, transition: Transition, following: int | None) -> None:
        """Remember a transition that somebody else played, and learn as after one of its own."""
        refuse_unobservable(self.task)
        if self.own.n_envs > 1 or len(self.seeds) > 1:
            raise BadInput(f"n_envs is {self.own.n_envs}, and transitions are observed one by one: leave it at 1")
        after = self.encoder.convert(transition.next_observation)[None]
        before = self._row(transition.observation)[None, None]
        assert isinstance(self.env, PythonEnv)
        step = self.env.read(transition)
        for advisor, paid in zip(self.task.advisors, step.reward[0], strict=True):
            if not np.isfinite(paid):
                raise not_finite(advisor)
        self._watching, self._opened = True, False
        self._remember(step, before, np.asarray(transition.action, np.float32)[None, None], after)
        self.rounds += 1
        self._catch_up()

    # ---- playing without learning ------------------------------------------------------------------------------------
    def evaluate(self, episodes: int, seed: int) -> EpisodeReturns:
        """Episodes of the first run, without noise."""
        return self.evaluate_all(episodes, seed)[0]

    def evaluate_all(self, episodes: int, seed: int) -> list[EpisodeReturns]:
        """Episodes of every run, without noise."""
        self.prepare()
        adapter = self.task.adapter
        assert adapter is not None
        with adapter.lock as lock:
            lock.user = None
            if adapter.vector:
                env, player = VectorEnv(self.task, self.seeds[0], self.encoder), self._player(0)
                return [self._evaluate_vector(env, seed, episodes, lambda: player(env.encode(env.state)))]
            return [
                self._evaluate_python(own, seed, episodes, self._single_player(run))
                for run, own in enumerate(self.seeds)
            ]

    def _player(self, run: int) -> Callable[[np.ndarray], np.ndarray]:
        """The actor's own actions [N, d] for observations [N, F]."""
        actor = tuple((weight[run], bias[run]) for weight, bias in self.actor)
        return lambda seen: means(actor, seen.astype(np.float32) * self._scale).astype(np.float32)

    def _single_player(self, run: int) -> Callable[[Any, int], np.ndarray]:
        player = self._player(run)
        return lambda state, _: player(self.encoder.convert(state)[None])[0]

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def tensors(self) -> Arrays:
        """Everything the run is made of."""
        self.prepare()
        if self.updates != self._due():
            raise Diverged("an update failed on the way: the networks were not saved; what was saved before is better")
        return {
            **kept((self.state, self.beside), self._episode_tensors(), self.memory.tensors()),
            "updates": np.array([self.updates], np.int64), "rounds": np.array([self.rounds], np.int64),
            "clock": self._clock, "tally": self._tally, **self.exploration.tensors(self.rounds),
        }  # fmt: skip

    def restore(self, tensors: Arrays) -> None:
        """Take up what `tensors` gave."""
        given = leaves_of(tensors, (self.state, self.beside))
        self.memory.restore(part_of(tensors, "replay"))
        self.updates, self.rounds = (int(whole(tensors, name, (1,))[0]) for name in ("updates", "rounds"))
        require(self.updates == self._due(), "updates")
        clock = whole(tensors, "clock", self._clock.shape)
        require(clock.sum() == self.memory.seen * len(self.seeds), "clock")
        self._clock[...], self._tally[...] = clock, array(tensors, "tally", self._tally.shape, np.float64)
        self.state, self.beside = networks_of(given, (self.state, self.beside))
        self.exploration.restore(tensors, self.rounds)
        self._resume(part_of(tensors, "episodes"), self._clock)
