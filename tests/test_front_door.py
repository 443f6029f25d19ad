"""The first ten minutes: anything is a task, a wrong first try leads to the right one, help fits a screen."""

import inspect
import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import multiadvisor as mad
from command_line import refused as one_line
from multiadvisor.cli import COMMANDS, main
from multiadvisor.commands import train
from multiadvisor.learners.keywords import Keywords
from multiadvisor.learners.kinds import LEARNERS
from test_documents import ROOT

PAPERS = re.compile(r"\b(turns?|games?|foc(us|i)|pac-?boy)\b", re.IGNORECASE)


def said(call):
    with pytest.raises((mad.BadInput, AttributeError)) as error:
        call()
    return str(error.value)


# ---- anything is a task ----------------------------------------------------------------------------------------------
def test_an_id_an_environment_and_a_task_are_the_same():
    made = mad.make("CartPole-v1")
    for task in ("CartPole-v1", gymnasium.make("CartPole-v1"), made):
        assert mad.MultiAdvisor(task).task.name == mad.make(task).name == "CartPole-v1"
    assert mad.make(made) is made
    assert mad.make(made, weights={"reward": 2.0}).weights.tolist() == [2.0]
    assert mad.check_task(gymnasium.make("FrozenLake-v1"), steps=50).ok
    assert mad.theory.enumerate_task("FrozenLake-v1").states == 11
    assert mad.theory.attractors("four-fruits", gamma=0.4)[0].stable is False
    assert made.with_weights({"reward": 2.0}).weights.tolist() == [2.0]


@pytest.mark.parametrize(
    ("task", "learner", "why"),
    [
        ("Pendulum-v1", "sac", "actions are real numbers"),
        ("CartPole-v1", "dqn", "observations are real numbers"),
        ("FrozenLake-v1", "tabular", "states can be numbered"),
    ],
)
def test_the_learner_is_chosen_and_it_is_said_why(task, learner, why):
    agent = mad.MultiAdvisor(task)
    assert agent.settings.learner.name == learner
    assert f"learned by {learner}" in str(agent)
    assert str(agent).endswith(why)
    assert PAPERS.search(str(agent)) is None


def test_what_make_takes_and_what_the_learner_takes_may_be_given_at_once():
    terms = {"angle": lambda t: -abs(float(t.observation[1])), "effort": {"reward": lambda t: -1.0, "weight": 0.1}}
    agent = mad.MultiAdvisor("Pendulum-v1", advisors=terms, hidden=(8,), learning_rate=1e-3, max_episode_steps=20)
    assert agent.task.names == ("angle", "effort")
    assert agent.task.weights.tolist() == [1.0, 0.1]
    assert (agent.settings.learner.hidden, agent.settings.learner.learning_rate) == ((8,), 1e-3)
    treasure = mad.MultiAdvisor("deep-sea-treasure-v0", advisors=["time", "treasure"]).task
    assert [(advisor.name, advisor.reward) for advisor in treasure.advisors] == [("time", 1), ("treasure", 0)]
    assert mad.Bins(0, 1, 5)(0.5) == mad.Bins([0], [1], [5])(0.5) == 2
    plain, direct = ({"learner": {"hidden": [8]}}, {"hidden": (8,)})
    assert mad.MultiAdvisor("CartPole-v1", **plain).settings == mad.MultiAdvisor("CartPole-v1", **direct).settings
    assert mad.MultiAdvisor("three-fruits", weights={"fruits": 2.0}, gamma=0.5).task.weights[0] == 2.0


MINE = """
import gymnasium
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
import multiadvisor as mad

class Lake(FrozenLakeEnv):
    def __init__(self, is_slippery=True):
        super().__init__(is_slippery=is_slippery)

task = mad.make("two-goal")
raising = mad.make("FrozenLake-v1", advisors={"key": lambda t: t.info["prob"] + t.info["none"]})
"""


@pytest.mark.usefixtures("nothing_imported")
def test_a_file_names_a_class_a_function_or_a_task(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_at_the_door.py").write_text(MINE)
    short = ["--steps", "200", "--eval-every", "200", "--eval-episodes", "1", "--max-episode-steps", "-1", "--json"]
    lake = "mine_at_the_door.py:Lake"
    assert main(["train", lake, "--env-kwarg", "is_slippery=false", *short[:-3], "--out", "run", "--json"]) == 0
    assert main(["evaluate", "run", "--episodes", "1"]) == 2
    assert "give task=" in capsys.readouterr().err
    assert main(["check", "mine_at_the_door.py:task", "--steps", "50"]) == 0
    capsys.readouterr()
    for wrong, words in (
        (f"{lake}s", "did you mean mine_at_the_door.py:Lake?"), ("./mine_at_the_door.py", "name what is meant in that"),
        ("mine_at_the_door.Lake", "what a file names is mine_at_the_door.py:Lake"),
        ("none.py:Lake", "there is no such file"),
        ("mine_at_the_door:Lake", "what a file names is mine_at_the_door.py:Lake"),
        ("run", "is the folder of a run, and no environment"),
        ("./run", "is the folder of a run, and no environment"),
        ("mine_at_the_door.py:raising", "in <lambda>); info has prob"),
    ):  # fmt: skip
        one_line(capsys, words, "train", wrong, "--steps", "9")


# ---- three jobs, in lines and in words that are ours -----------------------------------------------------------------
CARTPOLE = """
import multiadvisor as mad
terms = {"pole": lambda t: -abs(t.observation[2]), "cart": lambda t: -abs(t.observation[0])}
agent = mad.MultiAdvisor("CartPole-v1", advisors=terms)
agent.learn(60)
print(agent.evaluate(episodes=1), agent.explain([0.5, 0.0, 0.1, 0.3]))
"""
HOPPER = """
import multiadvisor as mad
agent = mad.MultiAdvisor("Hopper-v5", advisors="info:reward_*")
agent.learn(60)
print(agent.evaluate(episodes=1))
"""
OWN = """
import multiadvisor as mad
agent = mad.MultiAdvisor(env)
agent.learn(60)
print(agent.evaluate(episodes=1))
"""
KEPT = 'agent.learn(60, eval_every=30, save_best="best", tensorboard="board")\n'


@pytest.mark.slow
@pytest.mark.parametrize(("program", "lines", "words"), [(CARTPOLE, 5, 3), (HOPPER, 4, 2), (OWN, 4, 2)])
def test_three_jobs_take_few_lines_and_few_new_words(program, lines, words, tmp_path, monkeypatch):
    """With evaluation, best checkpoint and TensorBoard it is one line more; the page on Stable-Baselines3 says so."""
    if "Hopper" in program:
        pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    assert len(program.strip().splitlines()) <= lines
    assert f"| {lines} lines; `MultiAdvisor`" in (ROOT / "docs" / "coming-from-stable-baselines3.md").read_text("utf-8")
    assert len(set(re.findall(r"mad\.(\w+)|(advisors)=|\.(explain)", program))) <= words
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=20)
    exec(program + KEPT, {"env": env})  # noqa: S102
    assert {path.name for path in tmp_path.iterdir()} == {"best", "board"}


# ---- wrong first tries -----------------------------------------------------------------------------------------------
class Odd(gymnasium.Env):
    """With spaces as a test wants them."""

    def __init__(self, seen=spaces.Discrete(2), act=spaces.Discrete(2)):  # noqa: B008
        self.observation_space, self.action_space = seen, act


class OldEnv:
    """Of a library that came before."""

    action_space = observation_space = spaces.Discrete(2)
    step = reset = print


class VecEnv(OldEnv):
    """In the form of Stable-Baselines3's."""

    step_async = step_wait = print


WRONG = [
    ({"learning_rate": 1e-3, "task": "FrozenLake-v1"}, "its learning rate is alpha"),
    ({"total_timesteps": 10_000}, "agent.learn(100_000), or --steps"),
    ({"policy": "MlpPolicy"}, "networks follow from the environment"),
    ({"settings": "MlpPolicy"}, "give the environment alone, MultiAdvisor('CartPole-v1')"),
    ({"verbose": 1}, "learn(..., progress=False) is silent"),
    ({"n_steps": 2048}, "learner=mad.DQN(n_step=3)"),
    ({"net_arch": [64, 64]}, "it is called 'hidden' here"),
    ({"ent_coef": 0.1}, "it is called 'temperature' here"),
    ({"tau": 0.01}, "copied every target_update_interval updates"),
    ({"exploration_fraction": 0.1}, "it is called 'epsilon_steps' here"),
    ({"deep": True}, "it is called 'learner' now, as in learner='dqn'"),
    ({"device": "cuda"}, "JAX_PLATFORMS"),
    ({"gama": 0.9}, "did you mean 'gamma'?"),
    ({"discount_factor": 0.9}, "it is called 'gamma' here"),
    ({"learner": "ppo"}, "advisors learn off-policy"),
    ({"advisors": {"pole": lambda observation, action: 0.0}}, "it is given one, the transition t"),
    ({"tensorboard_log": "logs"}, "give learn(..., tensorboard=FOLDER)"),
    ({"render_mode": "human"}, "gymnasium.make(id, render_mode=...)"),
    ({"task": "FrozenLake-v1", "is_slippery": False}, "mad.make('FrozenLake-v1', is_slippery=...)"),
    ({"task": "FrozenLake-v1", "map_name": "8x8"}, "mad.make('FrozenLake-v1', map_name=...)"),
    ({"task": "cartpole"}, "did you mean 'CartPole-v1'?"),
    ({"task": "cartpole-v1"}, "did you mean 'CartPole-v1'?"),
    ({"task": "MyRobot-v0"}, "MODULE:MyRobot-v0 imports that first"),
    ({"alpha": 0.1}, "give learning_rate"),
    ({"weights": {"pole": 2.0}}, "or give it advisors, such as 'info:reward_*'"),
    ({"task": gymnasium.Env}, "Env is a class: give an environment, Env()"),
    ({"task": 3}, "give an environment, its id, such as 'CartPole-v1', or a task"),
    ({"task": None}, "the task is None: give an environment"),
    ({"task": None, "env": "CartPole-v1"}, "the environment comes first"),
    ({"task": VecEnv()}, "a VecEnv of Stable-Baselines3: give a single environment with n_envs=8"),
    ({"task": OldEnv()}, "let the class be a gymnasium.Env"),
    (
        {"task": Odd(act=spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))))},
        "Discrete, MultiDiscrete, MultiBinary and Box: wrap",
    ),
    ({"task": Odd(act=spaces.Box(-np.inf, np.inf, (2,)))}, "gymnasium.wrappers.TransformAction"),
    ({"task": Odd(seen=spaces.Sequence(spaces.Discrete(2)))}, "have no fixed length: wrap the environment"),
    ({"task": "mine.py"}, "name what is meant in that file, mine.py:NAME"),
    ({"task": "FrozenLake-v1", "env_kwargs": {"is_slippery": False}}, "mad.make('FrozenLake-v1', is_slippery=False)"),
    ({"terms": {"pole": lambda t: 0.0}}, "it is called 'advisors' here"),
    ({"settings": mad.DQN()}, "settings of a learner are given by name: learner=mad.DQN(...)"),
    ({"advisors": ["pole"]}, "write info:KEY, for example 'info:reward_*'"),
    ({"advisors": {"alive": 1.0}}, "the reward of 'alive' is no index, info:KEY or function"),
    ({"advisors": {"pole": {"reward": lambda t: 0.0, "wieght": 2.0}}}, "did you mean 'weight'?"),
    ({"advisors": {"pole": {"active": lambda seen, action: True}}}, "it is given one, the observation"),
    ({"advisors": {"pole": {"ended": lambda: True}}}, "it is given one, the transition t"),
    ({"learner": "DQN"}, "did you mean 'dqn'?"),
    ({"learner": "q-learning", "task": "FrozenLake-v1"}, "it is called 'tabular' here"),
    ({"learner": "sac"}, "its actions are a finite choice; leave learner out"),
    ({"aggregation": "mean"}, "it is called 'sum' here"),
    ({"hidden": 64}, "give integers, such as (64, 64)"),
    ({"bins": [4, 4, 4, 4]}, "number 1 of the observation has no range of its own: give LOW:HIGH:COUNT"),
    ({"wrappers": ["ClipReward"]}, "no pair such as ('ClipReward', {'max_reward': 1.0})"),
    ({"weights": [1.0]}, "give numbers by advisor or group, {'reward': 1.0}"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=lambda one: str(one)[:30])
def test_a_wrong_first_try_is_one_line_that_leads_on(given, words):
    line = said(lambda: mad.MultiAdvisor(**{"task": "CartPole-v1", **given}))
    assert words in line
    assert "\n" not in line
    assert PAPERS.search(line) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train CartPole-v1 --total-timesteps 100", "it is called '--steps' here"),
        ("train CartPole-v1 --n-eval-episodes 3", "it is called '--eval-episodes' here"),
        ("train CartPole-v1 --net-arch 64", "it is called '--hidden' here"),
        ("train CartPole-v1 --lr 0.1", "it is called '--learning-rate' here"),
        ("train --env-id CartPole-v1", "the environment comes first: train CartPole-v1"),
        ("train --task CartPole-v1", "the environment comes first: train CartPole-v1"),
        ("train CartPole-v1 --tensorboard-log x", "it is called '--tensorboard' here"),
        ("train CartPole-v1 --track", "nothing is sent anywhere"),
        ("train FrozenLake-v1 --learning-rate 0.1", "its learning rate is alpha"),
        ("train CartPole-v1 20000", "is --steps 20000 meant?"),
        ("train CartPole-v1 --steps 20k", "'20k' is not an integer, such as 20000"),
        ("train CartPole-v1 --alpha 0.1", "--alpha is for tables"),
        ("list", "it is called 'tasks' here"),
        ("solve CartPole-v1", "on the command line, --bins"),
        ("train cartpole", "did you mean 'CartPole-v1'?"),
        ("train pendulum", "did you mean 'Pendulum-v1'?"),
        ("train CartPole-v1 --learner ppo", "advisors learn off-policy"),
        ("CartPole-v1", "a command comes first: multiadvisor train CartPole-v1"),
        ("learn CartPole-v1", "it is called 'train' here"),
        ("train", "required: TASK, as in multiadvisor train Hopper-v5"),
        ("evaluate CartPole-v1", "train --out FOLDER makes one"),
        ("train --algo dqn --env CartPole-v1", "it is called '--learner' here"),
        ("train -n 1000 CartPole-v1", "flags are words after two dashes, see multiadvisor train --help"),
        ("train CartPole-v1 --episodes 100", "how long to learn is said in steps"),
        ("train CartPole-v1 --save runs/a", "it is called '--out' here"),
        ("train CartPole-v1 --weights 0.1", "is not of the form name=number,name=number"),
        ("train FrozenLake-v1 --map-name 8x8", "--env-kwarg map_name=VALUE"),
        ("train FrozenLake-v1 --env-kwarg slippery=false", "did you mean 'is_slippery'?"),
        ("train LunarLander-v2", "Please use `LunarLander-v3` instead"),
        ("train mine.py", "name what is meant in that file, mine.py:NAME"),
        ("--seed 3", "a command comes first"),
    ],
)
def test_so_is_one_on_the_command_line(line, words, capsys):
    assert PAPERS.search(one_line(capsys, words, *line.split())) is None


def test_arguments_of_neighbours_are_known_where_they_are_given():
    agent = mad.MultiAdvisor("FrozenLake-v1")
    assert "it is called 'steps' here" in said(lambda: agent.learn(total_timesteps=10))
    assert "it is called 'eval_every' here" in said(lambda: agent.learn(10, eval_freq=5))
    assert "learn needs the number of steps" in said(agent.learn)
    assert "it is called 'episodes' here" in said(lambda: agent.evaluate(n_eval_episodes=2))
    assert "evaluate and act are greedy" in said(lambda: agent.evaluate(deterministic=True))
    assert "MultiAdvisor('CartPole-v1', learner='dqn')" in said(lambda: mad.DQN("MlpPolicy", "CartPole-v1"))

    assert "called 'eval_episodes' now; how long to learn is said in steps" in said(lambda: agent.learn(episodes=10))
    assert "give a function of one argument" in said(lambda: agent.learn(10, callback=lambda now, more: True))
    assert "evaluated in its own environment" in said(lambda: agent.evaluate(gymnasium.make("FrozenLake-v1")))
    assert "give the observation alone" in said(lambda: agent.predict(gymnasium.make("FrozenLake-v1").reset()))
    assert "is called 'act' here" in said(lambda: agent.get_action)
    assert "evaluated in its own environment" in said(lambda: agent.learn(10, eval_env=gymnasium.make("FrozenLake-v1")))
    assert "the seed is the agent's: MultiAdvisor(env, seed=0)" in said(lambda: agent.learn(10, seed=1))
    assert "it is called 'seeds' here" in said(lambda: agent.evaluate(3, seed=1))
    assert "cannot be told (IndexError: " in said(lambda: mad.MultiAdvisor("Blackjack-v1").act((1, 2)))
    assert "Env has no action_space: set it" in said(lambda: mad.MultiAdvisor(gymnasium.Env()))
    assert "learner='dqn')" in said(lambda: mad.DQN(gymnasium.make("CartPole-v1")))
    assert "MultiAdvisor(env, learner=...) has 'learn'" in said(lambda: mad.DQN().learn(10))
    assert "did you mean 'gamma'?" in said(lambda: mad.Settings(gama=0.9))
    assert "it is called 'reward' here" in said(lambda: mad.Advisor("pole", reward_fn=len))
    assert "it is called 'learning_rate' here" in said(lambda: mad.DQN(lr=0.1))
    assert "it is called 'learn' here" in said(lambda: agent.train(10))
    assert "mad.load(FOLDER)" in said(lambda: mad.MultiAdvisor.load("runs/first"))
    assert "it is called 'task' here" in said(lambda: mad.load("runs/first", env=gymnasium.make("FrozenLake-v1")))
    assert "the folder is None: name a folder" in said(lambda: mad.load(None))
    assert "the folder is None: name a folder" in said(lambda: agent.save(None))
    assert "the record cannot be saved" in said(lambda: agent.save("nowhere", record={"x": object()}))
    assert "give them by advisor, reweight(ctrl=0.1)" in said(lambda: agent.reweight(2.0))
    assert "it is called 'steps' here" in said(lambda: agent.learn(9, callback=lambda now: now.num_timesteps < 5))
    assert "did you mean 'DQN'?" in said(lambda: mad.dqn)
    assert "the observation 99 is not in Discrete(16)" in said(lambda: agent.predict(99))
    assert "is not finite" in said(lambda: mad.MultiAdvisor("CartPole-v1").act(np.full(4, np.nan)))
    lake = gymnasium.make("FrozenLake-v1").unwrapped
    assert "wrap this one in gymnasium.wrappers.TimeLimit" in said(lambda: mad.MultiAdvisor(lake, max_episode_steps=9))
    assert "leave n_envs at 1" in said(lambda: mad.MultiAdvisor(Terms(), n_envs=2).learn(9))


class Terms(gymnasium.Env):
    """Of a user's own, with its terms in a dictionary."""

    observation_space, action_space = spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        terms = {"goal": 1.0, "effort": -float(action)}
        return np.zeros(2, np.float32), sum(terms.values()), True, False, {"terms": terms}


def test_an_own_environment_is_saved_and_given_again_to_load(tmp_path):
    """Its terms need no star where a dictionary is meant, and a file keeps all but the environment itself."""
    agent = mad.MultiAdvisor(Terms(), advisors="info:terms", weights={"effort": 0.5}).learn(20, progress=False)
    assert agent.task.names == ("goal", "effort")
    agent.save(tmp_path / "terms")
    assert "give task=" in said(lambda: mad.load(tmp_path / "terms"))
    again = mad.load(tmp_path / "terms", Terms())
    assert (again.steps, again.task.weights.tolist()) == (20, [1.0, 0.5])
    other = gymnasium.make("CartPole-v1")
    assert "no number in info fits" not in said(lambda: mad.load(tmp_path / "terms", other))
    mad.MultiAdvisor(Terms(), advisors={"goal": lambda t: 1.0}).save(tmp_path / "own")
    assert "has advisors with functions: give the task" in said(lambda: mad.load(tmp_path / "own", Terms()))
    binned = mad.MultiAdvisor(Terms(), bins="2,2").learn(20, progress=False)
    binned.save(tmp_path / "bins")
    assert mad.load(tmp_path / "bins", Terms()).values(0).tolist() == binned.values(0).tolist()


def test_a_comparison_of_numpy_stops_learning_as_false_does():
    agent = mad.MultiAdvisor("FrozenLake-v1")
    assert agent.learn(10_000_000, callback=lambda now: np.bool_(now.steps < 10), progress=False).steps < 10_000_000
    seen = []
    agent.learn(10, eval_episodes=1, callback=lambda now: seen.append(now.evaluation), progress=False)
    assert sum(one is not None for one in seen) == 10


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (lambda seen: -abs(seen[2]), "a transition has no [2]: its parts are t.observation, t.action"),
        (lambda t: t["reward"], "a transition has no 'reward': its parts are t.observation"),
        (lambda t: t.obs[2], "a transition has no 'obs': its parts are t.observation"),
        (lambda t: t.next_observation, "let it be a number"),
        (lambda t: print(end=""), "is not finite: correct what pays it; a function without a return gives None"),
        (lambda t: t.info["x"], "the reward of advisor 'pole' raised KeyError: 'x' ("),
        (lambda t: t.observation[7], "raised IndexError: index 7 is out of bounds for axis 0 with size 4"),
    ],
    ids=["indexed", "by key", "obs", "an array", "nothing", "not in info", "too far"],
)
def test_a_reward_that_asks_wrongly_is_told_what_there_is(reward, words):
    agent = mad.MultiAdvisor("CartPole-v1", advisors={"pole": reward})
    assert words in said(lambda: agent.learn(5, progress=False))


def test_numbers_of_steps_may_be_written_as_people_do(capsys):
    assert mad.MultiAdvisor("FrozenLake-v1").learn(1e2, progress=False).steps == 100
    assert main(["train", "FrozenLake-v1", "--steps", "1e2", "--eval-episodes", "1", "--json"]) == 0
    assert '"steps": 100' in capsys.readouterr().out
    agent = mad.MultiAdvisor("FrozenLake-v1")
    assert "save_best is True: name a folder" in said(lambda: agent.learn(10, save_best=True))
    assert "steps is 1.5" in said(lambda: agent.learn(1.5))
    assert agent.learn(10, eval_every=1e1, eval_episodes=1, progress=False).steps == 10
    assert mad.DQN(buffer_size=1e5) == mad.DQN(buffer_size=100_000)
    assert agent.evaluate(2, seeds=3).score == agent.evaluate(2, seeds=(3,)).score


def test_a_replay_buffer_that_is_too_large_is_said(monkeypatch):
    def full(*given):
        raise MemoryError("206 GiB")

    monkeypatch.setattr("multiadvisor.learners.kinds.LearnerKind.make", full)
    assert said(lambda: mad.MultiAdvisor("CartPole-v1")).endswith(
        "(206 GiB): give a smaller buffer_size, or fewer hidden units"
    )


def test_the_newest_version_of_an_environment_needs_no_number():
    assert mad.MultiAdvisor("CartPole").settings == mad.MultiAdvisor("CartPole-v1").settings


@pytest.mark.parametrize("task", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_will_it_get_stuck_is_answered_for_what_everybody_tries(task, capsys):
    """With one advisor no state is called an attractor: there are no goals to be held between."""
    assert main(["solve", task]) == 0
    first, how, verdict, *rest = capsys.readouterr().out.splitlines()
    assert (first, "own table of transitions" in how) == (f"{task}, egocentric, gamma = 0.99", True)
    assert verdict.startswith("never stuck: a single advisor that plans for itself acts optimally")
    assert [line.partition(":")[0] for line in rest[:1]] == ["greedy policy"]
    assert PAPERS.search("\n".join([verdict, *rest])) is None


@pytest.mark.slow
def test_a_user_of_cartpole_never_meets_the_papers_words(tmp_path, capsys):
    run = str(tmp_path / "run")
    for line in (
        f"train CartPole-v1 --steps 300 --eval-every 300 --eval-episodes 2 --out {run}",
        f"evaluate {run} --episodes 2 --report", f"explain {run} --step 3", "check CartPole-v1 --steps 100",
        f"explore {run} --export {tmp_path / 'page.html'}", f"diagnose --run {run} --steps 40 --branches 2",
        "solve CartPole-v1 --bins=-2.4:2.4:2,-3:3:2,-.2:.2:2,-3:3:2 --sample 300",
    ):  # fmt: skip
        assert main(line.split()) == 0, line
    out, error = capsys.readouterr()
    assert "chooses" in out
    assert PAPERS.search(out + error) is None
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "CartPole-v1" in page
    assert PAPERS.search(re.sub(r"\bfocus\b", "", page)) is None, "of a browser's focus the page speaks"
    for file in (tmp_path / "run").rglob("*.json"):
        assert PAPERS.search(file.read_text("utf-8")) is None, file


def test_names_of_other_packages_are_known():
    assert "mad.MultiAdvisor('CartPole-v1')" in said(lambda: mad.PPO)
    assert "check_task" in said(lambda: mad.check_env)
    assert "it is called 'MultiAdvisor' here" in said(lambda: mad.Agent)
    assert "did you mean 'MultiAdvisor'?" in said(lambda: mad.MultiAdviser)


# ---- help ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_screen(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) if command else pytest.MonkeyPatch.context():
        main([*command.split(), "--help"])
    text, error = capsys.readouterr()
    assert error == ""
    assert not command or "example:" in text
    assert command in ("", "reproduce") or max(map(len, text.splitlines())) <= 100
    assert command == "reproduce" or len(text.splitlines()) <= 34  # which lists its studies
    assert command not in ("", "train") or len(text.splitlines()) <= 30
    assert command in ("reproduce", "benchmark") or PAPERS.search(text) is None, "those are for research"


def test_the_rest_is_in_help_all(capsys):
    parser = train.parser()
    with pytest.raises(SystemExit):
        main(["train", "--help-all"])
    whole = capsys.readouterr().out
    assert all(flag in whole for flag in parser.flags() if "help" not in flag)
    short = parser.short_help()
    assert "--learning-rate" not in short
    assert "--steps INT" in short


def test_editors_know_every_setting_of_a_learner_and_what_make_takes():
    """`Keywords` says what the classes and the signature say themselves, and no more."""
    expected = {
        name: item.type
        for kind in LEARNERS.values()
        if str(kind.home).startswith("multiadvisor.")
        for name, item in kind.options().items()
    }
    takes = [each for each in inspect.signature(mad.make).parameters.values() if each.kind is each.KEYWORD_ONLY]
    expected |= {each.name: each.annotation for each in takes if each.name != "advisors"}
    assert {name: kind.__forward_arg__ for name, kind in Keywords.__annotations__.items()} == expected
    assert len(expected) > 40
