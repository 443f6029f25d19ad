"""`multiadvisor explain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multiadvisor.commands.parsing import Parser, add_named_task, parse, show
from multiadvisor.core.optional_dependencies import require
from multiadvisor.errors import BadInput
from multiadvisor.learners.registry import CONTINUOUS, kind_of

_LAST_EPISODE = 100_000


def run(arguments: Sequence[str]) -> int:
    """Explain one action of one episode."""
    parser = Parser(
        "explain",
        "Why did it do that? Plays an episode that `multiadvisor evaluate` plays with the same seed, and says of one "
        "step\n"
        "which advisors decided: one sentence, what each advisor adds to the action over another (RDX), the\n"
        "fewest that decide (MSX), without whom it would act differently, and whether the state is an attractor.",
        "multiadvisor explain runs/a --seed 3 --step 41\n"
        "  multiadvisor explain runs/a --seed 3 --step 41 --against East --json\n"
        "  multiadvisor explain runs/a --trace episodes.trace --episode 2 --step 41",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a saved run")
    parser.add_argument("--step", type=int, required=True, metavar="INT", help="which step of the episode, from 0")
    parser.flag("--seed", int, "seed of the episodes (default 0)")
    parser.flag("--episode", int, "which episode of that seed, from 0", 0)
    parser.flag("--against", str, "the action to compare with (default: the next best)", metavar="ACTION")
    parser.flag("--trace", Path, "take the episode from a trace of this run")
    parser.flag("--out", Path, "save a figure of it here, as .png and .svg")
    add_named_task(parser)
    given = parse(parser, arguments)
    for name in ("step", "episode"):
        if getattr(given, name) < 0:
            raise BadInput(f"{name} is {getattr(given, name)}: they are counted from 0")
    if given.episode > _LAST_EPISODE:
        raise BadInput(
            f"episode is {given.episode}: all episodes before it would be played, choose at most {_LAST_EPISODE}"
        )
    if given.trace is not None and given.seed is not None:
        raise BadInput("--trace has its own seed: leave --seed out")
    if given.out is not None:
        require("plots")
        from multiadvisor.viz import plots

        plots.check_place(given.out)
    from multiadvisor.agent import load
    from multiadvisor.explain.explanation import action_named
    from multiadvisor.runs.trace import explain_step, read_trace, record_evaluation

    trace = None if given.trace is None else read_trace(given.trace)
    agent = load(given.run, given.named)
    own = agent.settings.learner_settings
    if given.against is not None and not _numbers(agent):
        action_named(agent.task.actions, given.against, agent.task.first_action)  # refused before anything is played
    if trace is None and (_numbers(agent) or own.points):
        return _replayed(agent, given)
    if trace is None:
        _, trace = record_evaluation(agent, given.episode + 1, given.seed or 0)
    found = explain_step(agent, trace, given.episode, given.step, given.against)
    steps, seed = int(trace.length[given.episode]), trace.header["seed"]
    explored = trace.step(given.episode, given.step).explored
    place = {"seed": seed, "episode": given.episode, "step": given.step, "steps": steps, "explored": explored}
    how = ", at random" if explored else ""
    text = f"{agent.task.name}, seed {seed}, episode {given.episode}, step {given.step} of {steps}{how}\n{found}"
    if given.out is not None:
        size = (8, 1.5 + 0.3 * min(len(found.names) or 1, 15))
        figure = plots.one_axis(plots.explanation_bars, found, size=size)
        text += f"\nfigure in {plots.save(figure, given.out)}"
    show({"run": str(given.run), **place, **found.as_dict()}, given.json, text)
    return 0


def _replayed(agent: Any, given: Any) -> int:
    """Explain a step of an agent whose steps cannot be told from a trace: of a bank, or against another action."""
    from multiadvisor.envs.rollout import EvaluationEpisodes, rollout
    from multiadvisor.explain.decisions import decider_of

    if given.out is not None:
        raise BadInput("--out is for advisors with their own values of a few actions: leave it out")
    against, seed, decider = _against(agent, given.against), given.seed or 0, decider_of(agent)
    own = agent.settings.learner_settings
    source = EvaluationEpisodes(agent.task, agent.settings.seed, seed, own.own_draws(agent.task))
    played = list(rollout(source, given.episode, lambda state, draw: decider.decide(state, draw, values=False).action))
    if given.step >= len(played):
        raise BadInput(
            f"nothing is done at step {given.step}: episode {given.episode} ended after {len(played)} steps, "
            "counted from 0"
        )
    step = played[given.step]
    action = None if _numbers(agent) else agent.task.first_action + int(step.action)
    found = agent.explain(step.state, action, against)
    place = {"seed": seed, "episode": given.episode, "step": given.step, "steps": len(played)}
    where = f"{agent.task.name}, seed {seed}, episode {given.episode}, step {given.step} of {len(played)}"
    show({"run": str(given.run), **place, **found.as_dict()}, given.json, f"{where}\n{found}")
    return 0


def _numbers(agent: Any) -> bool:
    """Whether its actions are real numbers."""
    return kind_of(agent.settings.learner_settings).actions == CONTINUOUS


def _against(agent: Any, text: str | None) -> Any:
    """The action to compare with: a name, or the numbers of a continuous one."""
    if text is None or not _numbers(agent):
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadInput(f"--against is {text!r}: give numbers with commas, such as 0.5,-0.2") from None
