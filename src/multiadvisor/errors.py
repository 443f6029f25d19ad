"""The one exception that users meet: a sentence that names the culprit and the way out."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec, Self, TypeVar

_PACKAGE = Path(__file__).parent
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class BadInput(ValueError):
    """Invalid input; the message says what is wrong and what to do instead.

    The command line prints it as one line and exits with code 2.

    >>> import multiadvisor as mad
    >>> try:
    ...     mad.make("pac-man")
    ... except mad.BadInput as error:
    ...     print(str(error).partition(":")[0])
    unknown task 'pac-man'
    """


class Caution(UserWarning):
    """Something can be done as the caller asks, and is hardly what was meant; the command prints it as one line."""


class Diverged(BadInput):
    """Learning has gone astray: what was saved before it is better than what there is now."""


class FunctionFailed(BadInput):
    """A function of the user's own has raised an error."""


RENAMED = {
    "Focus": "Advisor", "foci": "advisors", "rest": "remainder", "speaks": "advises", "turn": "step", "turns": "steps",
    "game": "episode", "games": "episodes", "finished": "terminated", "option": "env_kwarg", "beside": "separate",
    "batch": "batch_size", "replay": "buffer_size", "starts": "learning_starts", "envs": "n_envs",
    "update_every": "train_freq", "target_every": "target_update_interval", "beside_every": "advisors_train_freq",
    "lr_turns": "lr_steps", "epsilon_turns": "epsilon_steps", "planning": "register_planning",
    "aggregation": "register_aggregation", "deal": "initial_state", "epochs": "steps", "transitions": "eval_every",
    "episodes": "eval_episodes", "transitions_per_second": "steps_per_second", "usual": "defaults",
    "measures": "metrics", "touches": "metrics", "looked": "steps_checked", "holds": "held_by", "by": "margin",
    "deep": "learner", "continuous": "learner", "correction": "extra_advisor", "arbitrator": "extra_advisor",
    "DeepSettings": "DQN", "ContinuousSettings": "SAC", "advisors": "tabular",
}  # fmt: skip
"""What was called otherwise before: nothing answers to the old names, but errors know them."""


MEANINGS = {
    "epochs": ", and it is the total: epochs times transitions", "deep": ", as in learner='dqn'",
    "continuous": ", as in learner='sac'", "episodes": "; how long to learn is said in steps",
}  # fmt: skip
"""What else changed with the name."""


def _bare(name: str) -> str:
    """The name of a setting, also where it is given as a flag."""
    return name.lstrip("-").replace("-", "_")


def _spelled(setting: str, like: str) -> str:
    """A setting spelled as another name is, which may be a flag."""
    dashes = like[: len(like) - len(like.lstrip("-"))]
    return dashes + (setting.replace("_", "-") if dashes else setting)


_NEIGHBOURS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # what is called otherwise here: the names that may be known where it is given, and how it is said if none is
    ("total_timesteps timesteps max_steps num_steps", ("steps",),
     "the number of steps is given to learn: agent.learn(100_000), or --steps"),
    ("discount discount_factor", ("gamma",), "give gamma"),
    ("lr", ("learning_rate", "alpha"), "tables have alpha, networks learning_rate"),
    ("learning_rate", ("learning_rate", "alpha"), "tables have alpha, networks learner=mad.DQN(learning_rate=...)"),
    ("q_lr policy_lr", ("learning_rate",), "tables have alpha, networks learning_rate"),
    ("net_arch policy_kwargs layers hidden_sizes hidden_size hidden_dim hidden_layers", ("hidden",),
     "layers are the learner's: learner=mad.DQN(hidden=(64, 64)), or --hidden 64,64"),
    ("ent_coef autotune", ("temperature",),
     "the weight of the entropy is learner=mad.SAC(temperature=...), 0 tunes it"),
    ("target_update_freq target_net_update_freq target_network_frequency", ("target_update_interval",),
     "give learner=mad.DQN(target_update_interval=...)"),
    ("train_frequency", ("train_freq",), "give learner=mad.DQN(train_freq=...)"),
    ("gradient_steps", ("train_freq",), "one update is made every train_freq transitions"),
    ("max_grad_norm", ("clip_norm",), "give learner=mad.DQN(clip_norm=...)"),
    ("num_envs", ("n_envs",), "give learner=mad.DQN(n_envs=...)"),
    ("exploration_rate exploration_final_eps final_epsilon end_e", ("epsilon",), "give epsilon"),
    ("exploration_initial_eps initial_epsilon start_e", ("epsilon_start",),
     "networks have learner=mad.DQN(epsilon_start=...)"),
    ("exploration_fraction epsilon_decay_steps", ("epsilon_steps",),
     "networks have mad.DQN(epsilon_steps=...), tables epsilon_half"),
    ("n_eval_episodes", ("eval_episodes", "episodes"), "give evaluate(episodes=...), or --eval-episodes"),
    ("eval_freq log_interval", ("eval_every",), "give learn(..., eval_every=10_000), or --eval-every"),
    ("progress_bar", ("progress",), "learn shows one; learn(..., progress=False) is silent"),
    ("best_model_save_path", ("save_best",), "give learn(..., eval_every=10_000, save_best=FOLDER), or --keep-best"),
    ("tensorboard_log", ("tensorboard",), "give learn(..., tensorboard=FOLDER), or --tensorboard FOLDER"),
    ("scalarization", ("aggregation",), "give aggregation"),
    ("mean average weighted_sum", ("sum",), "advice is summed, by the advisors' weights"),
    ("algo algorithm", ("learner",), "the learner is chosen by the task; learner='dqn' or --learner dqn names one"),
    ("q_learning qlearning tables", ("tabular",), "tables are learned by learner='tabular'"),
    ("terms reward_terms rewards reward_fn reward_fns reward_functions", ("advisors", "reward"),
     "give advisors={'name': function of the transition}"),
    ("save save_path save_dir log_dir logdir output_dir", ("out",), "agent.save(FOLDER), or --out FOLDER"),
    ("eval_env", (), "an agent is evaluated in its own environment, every eval_every steps"),
    ("seed", ("seed", "seeds"), "the seed is the agent's: MultiAdvisor(env, seed=0)"),
    ("env_kwargs", ("env_kwarg",), "arguments of the environment go to mad.make('FrozenLake-v1', is_slippery=False)"),
    ("weight", ("weights",), "weights are by advisor: mad.make(env, weights={'ctrl': 0.1})"),
    ("env_id task", ("task",), "the environment comes first: train CartPole-v1, or mad.MultiAdvisor('CartPole-v1')"),
    ("env", ("task",), "the environment comes first: train CartPole-v1, or mad.MultiAdvisor(env)"),
    # what does not exist here, or has another form
    ("learner_kwargs", (), "give learner=mad.DQN(...) with its settings"),
    ("n_steps", (), "nothing is learned from rollouts here; n-step returns are learner=mad.DQN(n_step=3)"),
    ("n_epochs", (), "transitions come from the replay buffer, and not from rollouts: leave it out"),
    ("gae_lambda", (), "there are no advantages of rollouts here: leave it out"),
    ("clip_range", (), "this is no PPO: leave it out"),
    ("vf_coef", (), "this is no actor-critic on rollouts: leave it out"),
    ("policy", (), "networks follow from the environment: leave it out, or give hidden=(64, 64)"),
    ("verbose", (), "leave it out; learn(..., progress=False) is silent"),
    ("device cuda", (), "networks run where JAX runs; the environment variable JAX_PLATFORMS=cpu chooses"),
    ("torch_deterministic", (), "the same seed always gives the same result: leave it out"),
    ("deterministic", (), "evaluate and act are greedy; act(..., explore=True) explores"),
    ("capture_video", (), "train, then multiadvisor evaluate RUN --video FILE.mp4"),
    ("render_mode", (), "give it to the environment: gymnasium.make(id, render_mode=...)"),
    ("track wandb log wandb_project_name", (),
     "nothing is sent anywhere; --tensorboard FOLDER and --csv FILE keep the curves"),
    ("prioritized_replay", (), "the replay buffer is uniform: leave it out"),
    ("optimize_memory_usage", (), "leave it out; buffer_size bounds the memory"),
    ("replay_buffer_class", (), "there is one replay buffer, with every advisor's reward: leave it out"),
    ("action_noise", (), "sac explores by its entropy: leave it out"),
    ("ref_point", (), "fronts are not searched for here; weights are chosen: mad.make(env, weights={'time': 0.5})"),
    ("reset_num_timesteps", (), "learn goes on from where it stopped: leave it out"),
    # methods and commands
    ("train", ("learn",), "agent.learn(100_000)"),
    ("fit run", ("train", "learn"), "agent.learn(100_000)"),
    ("learn", ("train",), "agent.learn(100_000)"),
    ("test play enjoy eval evaluate", ("evaluate",), "agent.evaluate(episodes=10)"),
    ("list envs environments", ("tasks",), "multiadvisor tasks lists the built-in ones"),
    ("watch render", ("explore",), "multiadvisor explore RUN shows a saved run"),
    ("load", (), "mad.load(FOLDER) gives the agent that was saved there"),
    ("num_timesteps global_step", ("steps",), "agent.steps"),
    ("get_action select_action choose_action", ("act",), "agent.act(observation)"),
    ("q_net q_network q_values", (), "agent.advice(observation) has every advisor's values"),
    ("weights", ("weights",), "agent.task.weights, and agent.reweight(ctrl=0.1) changes them"),
    ("solve", (), "mad.theory solves small tasks, as multiadvisor solve does on the command line"),
    ("set_env", (), "an agent keeps its environment: mad.load(FOLDER, task=...) gives it another"),
    ("get_env", (), "agent.task.adapter.env is its environment"),
    # names of the package
    ("Agent", ("MultiAdvisor",), "mad.MultiAdvisor('CartPole-v1')"),
    ("make_env", ("make",), "mad.MultiAdvisor takes an environment or its id"),
    ("make_vec_env", ("make",), "mad.MultiAdvisor takes an environment or its id; n_envs=8 plays several at once"),
    ("PPO A2C", (), "advisors learn off-policy: mad.MultiAdvisor('CartPole-v1') chooses dqn or sac by the actions"),
    ("TD3 DDPG", (), "continuous actions are learned by sac: mad.MultiAdvisor('Hopper-v5')"),
    ("QLearning", (), "tables are learned by mad.MultiAdvisor('FrozenLake-v1')"),
    ("MOQLearning", (), "give the environment to mad.MultiAdvisor: mad.MultiAdvisor('deep-sea-treasure-v0')"),
    ("check_env", ("check_task",), "give mad.check_task a task, an environment or its id"),
    ("evaluate_policy", (), "agent.evaluate(episodes=10)"),
)  # fmt: skip
NEIGHBOURS = {name: (ours, instead) for names, ours, instead in _NEIGHBOURS for name in names.split()}
"""What Stable-Baselines3, CleanRL and MORL-Baselines call it: what it is called here, or what to do instead."""


def neighbour(name: str, known: Iterable[str]) -> str:
    """What to use for a name of before, or of another library, spelled as a flag if it is one; empty if nobody has it.

    >>> neighbour("total_timesteps", ["steps"]), neighbour("--games", ["--eval-episodes"])
    ("it is called 'steps' here", "it is called '--eval-episodes' now")
    """
    names, bare = set(known), _bare(name)
    new = bare
    while new := RENAMED.get(new, ""):  # some were renamed twice
        if (spelled := _spelled(new, name)) in names:
            return f"it is called {spelled!r} now{MEANINGS.get(bare, '')}"
    ours, instead = NEIGHBOURS.get(bare) or NEIGHBOURS.get(bare.upper(), ((), ""))
    for one in ours:
        if (spelled := _spelled(one, name)) in names:
            return f"it is called {spelled!r} here"
    return instead


def similar(name: str, known: Iterable[str]) -> list[str]:
    """The known name that is meant, if any is like it, in whatever case it is written.

    >>> similar("DQN", ["dqn", "sac"]), similar("gama", ["gamma"]), similar("x", ["gamma"])
    (['dqn'], ['gamma'], [])
    """
    names = {one.lower(): one for one in known}
    return [names[one] for one in difflib.get_close_matches(name[:100].lower(), names, n=1)]


def unknown(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> BadInput:
    """An unknown name, with the closest known one, or all of them, and what else can be done."""
    names = sorted(known)
    if answer := neighbour(str(name), names):
        return BadInput(f"unknown {kind} {short(str(name))!r}: {answer}")
    close = similar(str(name), names)
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}{otherwise}"
    return BadInput(f"unknown {kind} {short(str(name))!r}: {hint}")


def no_attribute(kind: type, name: str) -> AttributeError:
    """Of a class whose methods other libraries call otherwise: the error names ours."""
    answer = "" if name.startswith("_") else neighbour(name, dir(kind))
    return AttributeError(f"{kind.__name__} has no attribute {name!r}{': ' if answer else ''}{answer}")


def no_part(transition: Any, name: Any) -> NoReturn:
    """Of what is asked for by name, as in t.reward: the error names the parts that there are."""
    shown = repr(name) if isinstance(name, str) else f"[{name!r}]"
    raise AttributeError(f"a transition has no {shown}: its parts are t.{', t.'.join(transition._fields)}")


class KnowsFields:
    """A dataclass whose errors about unknown fields name the one that is meant."""

    kind: ClassVar[str] = "setting"
    """What its fields are called in an error."""

    if not TYPE_CHECKING:  # editors see the fields

        def __new__(cls, *_given: Any, **named: Any) -> Self:
            """Refuse what is no field."""
            known = [item.name for item in dataclasses.fields(cls)]
            for name in named:
                if name not in known:
                    raise unknown(cls.kind, name, known)
            return super().__new__(cls)


class KnowsNeighbours(type):
    """Of such a class, where it is asked itself, as in MultiAdvisor.load."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise no_attribute(cls, name)


def knows_arguments(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """A function whose errors about unknown arguments name the one that is meant."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        for name in named:
            if name not in names:
                raise unknown(f"argument of {function.__name__}", name, names)
        return function(*given, **named)

    return call


def short(text: str, most: int = 60) -> str:
    """A text of others for one line of ours."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument, as far as it says."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled code may not say
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def failed(what: str, error: Exception, info: Iterable[Any] = ()) -> BadInput:
    """What a function of the user's own raised, in one line, with its place and, of a key, those that `info` has."""
    if isinstance(error, BadInput):
        return BadInput(str(error))
    frames, keys = traceback.extract_tb(error.__traceback__), short(", ".join(map(str, info)))
    last = next((each for each in reversed(frames) if not Path(each.filename).is_relative_to(_PACKAGE)), None)
    if last is None:  # it is ours, of something that no environment gives
        return BadInput(f"{what} cannot be told ({in_one_line(error)}): give what the environment gives")
    more = f"; info has {keys}" if keys and isinstance(error, KeyError) else ""
    return FunctionFailed(f"{what} raised {in_one_line(error)} ({last.filename}:{last.lineno}, in {last.name}){more}")


def in_one_line(error: BaseException) -> str:
    """An exception in one line: its type and what it says."""
    text = short(str(error), 160)
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def fault_of_environment(error: BaseException) -> str | None:
    """What an environment raised and where, in one line; None where the fault is not an environment's.

    The place is the last one in a file of the user's own, or, where there is none, in whatever is installed.
    """
    import gymnasium  # lazily: who makes no mistake need not wait for it

    walked = list(traceback.walk_tb(error.__traceback__))
    own = [k for k, (frame, _) in enumerate(walked) if Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)]
    beyond = walked[own[-1] + 1 :] if own else []
    kinds = (gymnasium.Env, gymnasium.vector.VectorEnv)
    if not beyond or not isinstance(beyond[0][0].f_locals.get("self"), kinds):
        return None
    installed = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platlib", "purelib"))
    users = [place for place in beyond if not place[0].f_code.co_filename.startswith(installed)]
    frame, line = (users or beyond)[-1]
    return f"{in_one_line(error)} ({frame.f_code.co_filename}:{line}, in {frame.f_code.co_name})"
