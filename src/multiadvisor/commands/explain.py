"""`multiadvisor explain`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multiadvisor.agent import load
from multiadvisor.analysis.episodes import Episodes, record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.commands.parsing import Parser, add_named_task, integer, named_task, parse, show
from multiadvisor.core.optional_dependencies import require
from multiadvisor.core.rng import evaluation_seed
from multiadvisor.diagnosis.kept import TAUGHT, answered, answers_for
from multiadvisor.errors import BadInput
from multiadvisor.explain.explanation import action_named
from multiadvisor.learners.kinds import CONTINUOUS, kind_of
from multiadvisor.runs.trace import explain_step, record_evaluation
from multiadvisor.settings import whole_number

_LAST_EPISODE = 100_000  # all episodes before it may have to be played


def parser() -> Parser:
    """The flags."""
    flags = Parser(
        "explain",
        "Why did it do that? Plays an episode that `multiadvisor evaluate` plays with the same seed, and says of one "
        "step\n"
        "which advisors decided: one sentence, what each advisor adds to the action over another (RDX), the\n"
        "fewest that decide (MSX), without whom it would act differently, and whether the state is an attractor.",
        "multiadvisor explain runs/a --seed 3 --step 41\n"
        "  multiadvisor explain runs/a --seed 3 --step 41 --against East --json\n"
        "  multiadvisor explain runs/a --trace episodes.trace --episode 2 --step 41",
    )
    flags.add_argument("run", type=Path, metavar="RUN", help="the folder of a saved run")
    flags.add_argument("--step", type=integer, required=True, metavar="INT", help="which step of the episode, from 0")
    flags.flag("--seed", int, "seed of the episodes (default 0)")
    flags.flag("--episode", int, "which episode of that seed, from 0", 0)
    flags.flag("--against", str, "the action to compare with (default: the next best)", metavar="ACTION")
    flags.flag("--trace", Path, "take the episode from a trace of this run")
    flags.add_argument(
        "--branches", action=argparse.BooleanOptionalAction,
        help="try both actions out as well: short branches in the environment, by term, prepared once in some seconds "
        "to a minute and kept in RUN; not given: of networks, where states are restored, or as `diagnose --teach` "
        "taught it (--no-branches leaves it out)",
    )  # fmt: skip
    flags.flag("--out", Path, "save a figure of it here, as .png and .svg")
    add_named_task(flags)
    return flags


def run(arguments: Sequence[str]) -> int:
    """Explain one action of one episode."""
    given = parse(parser(), arguments)
    whole_number("step", given.step)
    whole_number("episode", given.episode, 0, _LAST_EPISODE)
    if given.trace is not None and given.seed is not None:
        raise BadInput("--trace has its own seed: leave --seed out")
    if given.out is not None:
        require("plots")
        from multiadvisor.viz import plots

        plots.check_place(given.out)

    trace = None if given.trace is None else read_trace(given.trace)
    agent = load(given.run, named_task(given, given.run))
    if given.against is not None and not _numbers(agent):
        action_named(agent.task.actions, given.against, agent.task.first_action)  # refused before anything is played
    asked = trace is None and (_numbers(agent) or agent.settings.learner_settings.points)
    if asked and given.out is not None:
        raise BadInput("--out is for advisors with their own values of a few actions: leave it out")
    if trace is None:
        play = record if asked else lambda *what: record_evaluation(*what)[1]
        trace = play(agent, given.episode + 1, given.seed or 0)
    found, state = _explained(agent, given, trace, asked)
    place = {"seed": trace.header["seed"], "episode": given.episode, "step": given.step,
             "steps": int(trace.length[given.episode]),
             "explored": trace.step(given.episode, given.step).explored}  # fmt: skip
    how = ", at random" if place["explored"] else ""
    more: dict[str, Any] = {}
    text = "{name}, seed {seed}, episode {episode}, step {step} of {steps}".format(name=agent.task.name, **place)
    text += f"{how}\n{found}"
    if given.branches or (given.branches is None and (found.caveat or (given.run / TAUGHT).exists())):
        more, said = _tried_out(given, agent, found, trace, state)
        text += said
    if given.out is not None:
        size = (8, 1.5 + 0.3 * min(len(found.names) or 1, 15))
        figure = plots.one_axis(plots.explanation_bars, found, size=size)
        text += f"\nfigure in {plots.save(figure, given.out)}"
    show({"run": str(given.run), **place, **found.as_dict(), **more}, given.json, text)
    return 0


def _explained(agent: Any, given: Any, trace: Episodes, asked: bool) -> tuple[Any, Any]:
    """Why, and the state: as the trace keeps it, or `asked` of the agent, whose steps cannot be told from a trace (of
    a bank) or may be compared with any other action."""
    if not asked:
        found = explain_step(agent, trace, given.episode, given.step, given.against)
        return found, trace.seen(given.episode, given.step)
    actions = trace.actions_of(given.episode)
    if given.step >= len(actions):
        raise BadInput(
            f"nothing is done at step {given.step}: episode {given.episode} ended after {len(actions)} steps, "
            "counted from 0"
        )
    state = trace.positions[trace.walk(given.episode).start + given.step]
    action = None if _numbers(agent) else agent.task.first_action + actions[given.step]
    return agent.explain(state, action, _against(agent, given.against)), state


def _tried_out(given: Any, agent: Any, found: Any, trace: Episodes, state: Any) -> tuple[dict[str, Any], str]:
    """What branches show, or taught, of the action and of the one it is compared with; for JSON, in words."""
    try:
        if found.other is None:
            raise BadInput("there is no other action to compare with: leave --branches out")
        asked = answers_for(given.run, agent, slow=bool(given.branches))
        other = np.array(found.numbers[1]) if found.numbers else agent.task.played(found.other)
        begun = evaluation_seed(agent.settings.seed, trace.header["seed"], given.episode)
        actions = trace.actions_of(given.episode)[: given.step + 1]
        tried = answered(asked, agent, begun, actions, state, other)
    except BadInput as error:
        if given.branches:
            raise
        return {"branches": None}, f"\n(not tried out: {error})"
    cost = f"{tried.steps:,} steps, {tried.seconds:.2f} s; " if tried.steps else ""
    return {"branches": tried.as_dict()}, f"\n{tried.sentence}\n({cost}{asked})"


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
