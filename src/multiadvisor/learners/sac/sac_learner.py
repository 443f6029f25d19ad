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
from multiadvisor.envs.step import Step
from multiadvisor.errors import BadInput, Diverged
from multiadvisor.learners.dqn.backend import jax, jnp
from multiadvisor.learners.network_learner import (
    DONE,
    SCORE,
    SCORE_SUM,
    NetworkLearner,
    Player,
    refuse_infinite,
)
from multiadvisor.learners.packed import Packed, pack
from multiadvisor.learners.protocol import (
    Advice,
    ComparedActions,
    Decision,
    Learner,
    nobody,
    push_shares,
)
from multiadvisor.learners.sac.actor_critic import Layers, explored, forward, initial, means, slopes
from multiadvisor.learners.sac.sac_settings import SAC
from multiadvisor.learners.sac.sac_update import MODES, Learned, SACTask, Twins, decomposed, heads_of, program
from multiadvisor.learners.sac.transition_buffer import Columns, Memory
from multiadvisor.settings import Settings
from multiadvisor.task import Advisor, Task

_BLOCK = 256  # steps whose noise is made together
_BATCHES = 16  # calls of the update whose batches are made together
_ACTING, _LEARNING = 1 << 33, 1 << 34  # streams of a run
TAKEN, CENTRE, ENTROPY = "action taken", "centre of the box", "entropy"
"""What is compared where actions are real numbers, and who is asked beside the advisors."""
_SUM = "reward"  # what the only head of a plain critic values


class ActionValues(NamedTuple):
    """What the critics say of k actions in one state."""

    advisors: np.ndarray  # [m] who is active
    weights: np.ndarray  # [m]
    values: np.ndarray  # [m, k] of each advisor, before weights
    entropy: np.ndarray  # [k] of the entropy to come; 0 where no critic tells it apart
    control: np.ndarray  # [k] what the actor follows
    slopes: np.ndarray  # [m, d] of the weighted values at the first action, each number of an action from -1 to 1


class RandomBlocks:
    """Random numbers of the steps of several runs, made a block of steps at a time."""

    def __init__(
        self, seeds: Sequence[int], stream: int, size: int,
        make: Callable[[np.random.Generator], tuple[np.ndarray, ...]],
    ) -> None:  # fmt: skip
        """`make` gives arrays [size, ...] of one run."""
        self._keys = [int(stream_key(seed, TRAINING, stream)) for seed in seeds]
        self._size, self._make = size, make
        self._block, self._parts = -1, list[np.ndarray]()

    def of(self, step: int) -> list[np.ndarray]:
        """Those of one step, [S, ...] each."""
        block, place = divmod(step, self._size)
        if self._block != block:
            philox = [np.random.Philox(key=key, counter=[0, 0, 0, block]) for key in self._keys]
            runs = [self._make(np.random.Generator(one)) for one in philox]
            self._block, self._parts = block, [np.stack(part, axis=1) for part in zip(*runs, strict=True)]
        return [part[place] for part in self._parts]


class ContinuousLearner(NetworkLearner):
    """Learns with an actor and critics; S = len(seeds) runs side by side, all of them alike but for the seed."""

    own: SAC

    def __init__(
        self, task: Task, settings: Settings, saved: Shapes | None = None, seeds: Sequence[int] | None = None
    ) -> None:
        """`saved`: of what shape the arrays are that will be restored, so that no memory is asked for others."""
        assert task.adapter is not None
        assert task.adapter.box is not None
        own = settings.learner_settings
        assert isinstance(own, SAC)
        super().__init__(task, settings, own, seeds)
        own.check_task(task, settings.gamma)
        self.critics = "one" if task.n == 1 and own.critics == "separate" else own.critics  # nothing to tell apart
        self.aggregator: Aggregator = aggregator_of(task, "sum")
        self.actions = task.adapter.box
        if saved is not None and not task.adapter.vector:
            require(saved.get("clock") == (len(self.seeds) * own.n_envs,), "clock")
        self.encoder = encoder_of(task)
        self.env = self._python_env()
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
        self.state = Learned(
            self._program.start(actor, critic), self._program.start_critic(beside) if beside else None
        )  # fmt: skip
        self.weighed = self._weigh(task)
        self.memory = Memory(self.columns, runs, own.buffer_size)
        self._loss: tuple[Any, int] | None = None  # of the last updates, summed, and how many these were
        self.rounds = 0  # of all episodes together: which noise is next
        self._noise = RandomBlocks(self.seeds, _ACTING, _BLOCK, self._acting_noise)
        self._batches = RandomBlocks(self.seeds, _LEARNING, _BATCHES, self._batch_noise)
        self.times = np.zeros(runs * episodes, np.int64)
        self.tally = np.zeros((runs * episodes, 3))
        self._see()

    def _networks(self) -> tuple[Layers, Twins, Twins]:
        """Fresh ones, for each run from a generator of its own."""
        columns, mode, own = self.columns, MODES[self.critics], self.own
        seen = columns.features + columns.dimensions

        def one(seed: int) -> tuple[Layers, Twins, Twins]:
            generators = [np.random.default_rng([seed, 0x5AC, part]) for part in range(4)]
            heads = heads_of(mode.control, columns.advisors)
            beside = () if mode.beside is None else (heads_of(mode.beside, columns.advisors),)
            return (
                initial(generators[0], columns.features, own.hidden, 2 * columns.dimensions),
                tuple(initial(generators[1 + twin], seen, own.hidden, heads) for twin in range(2)),
                tuple(initial(generators[3], seen, own.hidden, count) for count in beside),
            )

        made = [one(seed) for seed in self.seeds]
        if len(made) == 1:
            return made[0]
        stacked: tuple[Layers, Twins, Twins] = jax.tree.map(lambda *leaves: np.stack(leaves), *made)
        return stacked

    def _weigh(self, task: Task) -> SACTask:
        gamma = self.settings.gamma
        if self.critics == "one" and task.n == 1 and not task.weights[0]:
            raise BadInput(f"advisor {task.names[0]!r} is the only one, and its weight is 0: give it another weight")
        parts = (task.weights, task.gammas(gamma), gamma)
        return SACTask(*(jnp.asarray(part, jnp.float32) for part in parts))  # at hand, as they seldom change

    # ---- what was learned --------------------------------------------------------------------------------------------
    def last_losses(self) -> dict[str, float]:
        """The mean loss of critics and actor in the first run's last updates; empty before the first."""
        return {} if self._loss is None else {"critics and actor": float(np.ravel(self._loss[0])[0]) / self._loss[1]}

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

    def _see(self) -> None:
        """Take a copy of the actor for acting: the original's memory is given away at the next update."""
        alone = None if len(self.seeds) == 1 else ...  # an axis for the only run
        leaves = self._control.first(2 * (1 + len(self.own.hidden)))  # weights and biases by turns
        self.actor: Layers = tuple((leaves[k][alone], leaves[k + 1][alone]) for k in range(0, len(leaves), 2))

    @property
    def state(self) -> Learned:
        """Actor, critics and what their update needs, as NumPy arrays."""
        return Learned(self._control.copied(), None if self._beside is None else self._beside.copied())

    @state.setter
    def state(self, state: Learned) -> None:
        stacked = len(self.seeds) > 1
        self._control: Packed = pack(state.control, stacked)
        self._beside = None if state.beside is None else pack(state.beside, stacked)

    def _own(self, networks: Any, run: int = 0) -> Any:
        """One run's networks, as NumPy arrays."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[run] if len(self.seeds) > 1 else np.asarray(leaf), networks)

    def _row(self, state: Any) -> np.ndarray:
        """One observation [F] as the networks see it."""
        return self.encoder.convert(state).astype(np.float32) * self._scale

    def choose(self, state: Any, run: int = 0) -> np.ndarray:
        """The actor's own action in one state, [d] from -1 to 1."""
        found: np.ndarray = means(self._actor_of(run), self._row(state)[None])[0]
        return found

    def _actor_of(self, run: int) -> Layers:
        return tuple((weight[run], bias[run]) for weight, bias in self.actor)

    def judge(self, state: Any, actions: np.ndarray, run: int = 0) -> ActionValues:
        """What the critics say of actions [k, d], each number from -1 to 1."""
        seen = np.concatenate([np.repeat(self._row(state)[None], len(actions), axis=0), actions], axis=1)
        learned = self.state
        twins = self._own(learned.control.critic.learned.networks, run)
        each_twin = [forward(twin, seen) for twin in twins]  # [k, H] each
        task, kind = self.task, MODES[self.critics]
        active = self.env.active_in(state).astype(bool) if self._activity else np.ones(task.n, bool)
        mix = np.append(task.weights * active, 1.0) if kind.control is decomposed else np.ones(1)
        sums = np.stack([each @ mix for each in each_twin])  # [2, k]
        chosen, lower = each_twin, sums.argmin(axis=0)
        if kind.beside is not None:
            assert learned.beside is not None
            (beside,) = self._own(learned.beside.learned.networks, run)
            chosen, lower, twins = [forward(beside, seen)], np.zeros(len(actions), int), (beside,)
        values = np.stack([chosen[twin][k] for k, twin in enumerate(lower)]).T.astype(np.float64)  # [H, k]
        slope = slopes(twins[lower[0]], seen[0])[:, self.columns.features :]  # [H, d]
        control = sums.min(axis=0).astype(np.float64)
        if len(values) == 1:
            weights = np.ones(1) if self._alone_valued else task.weights
            who, entropy = np.zeros(1, np.int64), np.zeros(len(actions))
            return ActionValues(who, weights, values / weights[:, None], entropy, control, slope)
        keep, weights = np.flatnonzero(active), task.weights[active]
        return ActionValues(keep, weights, values[keep], values[-1], control, weights[:, None] * slope[keep])

    def _advice(self, judged: ActionValues) -> Advice:
        names = [advisor.name for advisor in self.advisors]
        return Advice(tuple(names[j] for j in judged.advisors.tolist()), judged.values, judged.weights, judged.advisors)

    def consult(self, state: Any) -> Advice:
        """The active advisors' values of the actor's own action, [m, 1]."""
        return self._advice(self.judge(state, self.choose(state)[None]))

    def preferences(self, state: Any) -> np.ndarray:
        """What the actor follows, of its own action [1]."""
        return self.judge(state, self.choose(state)[None]).control

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

    def decide(self, state: Any, random_bits: int = 0, epsilon: float = 0.0, *, values: bool = True) -> Decision:
        """The actor's own action, compared with the centre of the box."""
        if epsilon:
            raise BadInput(f"epsilon is for a finite choice, not for the actions of {self.task.name!r}: leave it out")
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
        box, judged = self.actions, self.judge(state, np.stack([mine, other]))
        who, values, weights = judged.advisors, judged.values, judged.weights
        push = push_shares(judged.slopes)[0]
        if self.tells_entropy:
            who, weights, push = np.append(who, len(self.advisors)), np.append(weights, 1.0), np.append(push, np.nan)
            values = np.concatenate([values, judged.entropy[None]])
        pair = ComparedActions(
            box.to_environment(mine), box.to_environment(other), float(judged.control[0]), judged.slopes
        )
        return Decision(mine, 0, False, who, values, weights, None, push, pair)

    def act(self, state: Any, draw: float = 0.0, *, explore: bool = False) -> Any:
        """The actor's action, an array in the environment's own form."""
        return self.actions.to_environment(self.explore(state) if explore else self.choose(state))

    def epsilon_now(self) -> float:
        """Exploration is the actor's own noise."""
        return 0.0

    def judge_actions(self, state: Any, actions: Any) -> Advice:
        """The active advisors' values [m, k] of actions [k, ...] of the environment's."""
        return self._advice(self.judge(state, np.stack([self.read_action("an action", each) for each in actions])))

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
        state = self.state
        beside = state.beside
        if not anew or beside is None:
            return
        mix = np.append(task.weights, 1.0).astype(np.float32)  # [n + 1]

        def collapsed(heads: Layers) -> Layers:
            *before, (weight, bias) = jax.tree.map(np.asarray, heads)
            return (*before, ((mix @ weight)[..., None, :], (bias @ mix)[..., None]))

        twins = collapsed(beside.learned.networks[0]), collapsed(beside.target[0])
        self.state = state._replace(control=state.control._replace(critic=self._program.start_critic(twins)))

    # ---- learning ----------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        self.tally[:, SCORE] = 0.0

    def _acting_noise(self, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Of each step: standard normal noise, and actions by chance; [_BLOCK, episodes, d] each."""
        shape = (_BLOCK, self.episodes_each, self.columns.dimensions)
        return generator.standard_normal(shape, np.float32), generator.random(shape, np.float32) * 2 - 1

    def _exploring(self, observation: np.ndarray, step: int) -> np.ndarray:
        """The actions [S, episodes, d] that learning takes for observations [S, episodes, F]."""
        noise, chance = self._noise.of(step)
        if self.steps < self.own.learning_starts:
            return chance[:, : observation.shape[1]]
        with np.errstate(all="ignore"):  # what is not finite is refused below
            action = explored(self.actor, observation, noise[:, : observation.shape[1]])
        if not np.isfinite(action).all():
            raise self._diverged("the actor's action")
        return action

    def _seen(self, observations: np.ndarray) -> np.ndarray:
        """Observations [N, F] of all runs as the networks see them, [S, N / S, F]."""
        return (
            observations.astype(np.float32, copy=False).reshape(len(self.seeds), -1, self.columns.features)
            * self._scale
        )

    def _actions(self) -> np.ndarray:
        actions = self._exploring(self._seen(self.current), self.rounds).astype(np.float32)
        return actions.reshape(-1, self.columns.dimensions)

    def _remember(self, step: Step, before: np.ndarray, arrived: np.ndarray) -> None:
        columns, seen = self.columns, self._seen(before)
        shape = seen.shape[:2]
        played = ~step.begun
        everywhere = bool(played.all())
        # where it is raised, the episodes have gone on and the memory has not: what was saved before is better
        refuse_infinite(self.task.names, step.reward if everywhere else step.reward[played], Diverged)
        rows = np.empty((*shape, columns.width), np.float32)
        batch = columns.split(rows)
        batch.observation[...] = seen
        batch.next_observation[...] = self._seen(arrived)
        batch.action[...] = step.action.reshape(*shape, -1)
        batch.reward[...] = step.reward.reshape(*shape, -1)
        batch.terminated[...] = step.terminated.reshape(*shape, 1)
        if columns.ends:
            batch.ended[...] = (step.ended | step.terminated[:, None]).reshape(*shape, -1)
        if columns.activity:
            batch.active[...] = step.advisors.reshape(*shape, -1)
            batch.next_active[...] = step.next_advisors.reshape(*shape, -1)
        self.memory.add(rows if everywhere else rows[:, played])
        self.times += played
        with np.errstate(over="ignore"):
            self.tally[:, SCORE] += np.where(played, step.reward @ self.task.weights, 0.0)
        over = step.over & played
        if np.count_nonzero(over):  # faster than `any`
            self.tally[over, SCORE_SUM] += self.tally[over, SCORE]
            self.tally[over, DONE] += 1
            self.tally[over, SCORE] = 0.0
        self.rounds += 1

    def _batch_noise(self, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Of each call of the update: numbers in [0, 1) [., K, B], and standard normal noise [., K, 2, B, d]."""
        front, batch = (_BATCHES, self.own.updates_at_once), self.own.batch_size
        chance = generator.random((*front, batch))
        return chance, generator.standard_normal((*front, 2, batch, self.columns.dimensions), np.float32)

    def _learn(self) -> None:
        count = self.own.updates_at_once
        chance, normal = self._batches.of(self.updates // count)
        rows = self.memory.rows((chance * self.memory.filled).astype(np.int64))
        if len(self.seeds) == 1:
            rows, normal = rows[0], normal[0]
        rates = np.array(self.own.rates(self.updates), np.float32)
        self._control, loss = self._program.update(self._control, self.weighed, rows, normal, rates)
        losses = [loss, *self._value(rows, normal, rates)]
        self._loss = losses[0], count
        self.updates += count
        self._see()
        if not all(np.isfinite(np.asarray(loss)).all() for loss in losses):
            raise self._diverged("the loss of the critics")

    def _value(self, rows: np.ndarray, normal: np.ndarray, rates: np.ndarray) -> list[Any]:
        """Every so many updates, one of the critic beside: a program of its own, lest the other be disturbed."""
        if self._beside is None:
            return []
        due = np.flatnonzero((self.updates + np.arange(self.own.updates_at_once)) % self.own.advisors_train_freq == 0)
        if not len(due):
            return []
        axis = 0 if len(self.seeds) == 1 else 1
        parts = (np.take(rows, due, axis=axis), np.take(normal, due, axis=axis), rates[due])
        self._beside, loss = self._program.value(self._beside, self._control, self.weighed, *parts)
        return [loss]

    # ---- episodes that somebody else plays ---------------------------------------------------------------------------
    def explore(self, state: Any) -> Any:
        """The action that learning would take in one state, [d] from -1 to 1."""
        seen = np.repeat(self._row(state)[None, None], len(self.seeds), axis=0)
        return self._exploring(seen, self.exploration.step(self.rounds))[0, 0]

    # ---- playing without learning ------------------------------------------------------------------------------------
    def _player(self, run: int, keys: list[np.uint64]) -> Player:
        """The actor's own actions [N, d], without noise."""
        actor = self._actor_of(run)
        return lambda seen, _: means(actor, seen.astype(np.float32) * self._scale).astype(np.float32)

    # ---- what a checkpoint keeps -------------------------------------------------------------------------------------
    def _counters(self) -> Arrays:
        rounds = np.array([self.rounds], np.int64)
        return {"rounds": rounds, "clock": self.times, "tally": self.tally, **self.exploration.tensors(self.rounds)}

    def _restore_memory(self, replay: Arrays, tensors: Arrays) -> None:
        self.memory.restore(replay)
        times = whole(tensors, "clock", self.times.shape)
        require(times.sum() == self.memory.seen * len(self.seeds), "clock")
        self.times[...], self.tally[...] = times, array(tensors, "tally", self.tally.shape, np.float64)
        self.rounds = int(whole(tensors, "rounds", (1,))[0])
        self.exploration.restore(tensors, self.rounds)
