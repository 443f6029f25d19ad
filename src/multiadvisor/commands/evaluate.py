"""`multiadvisor evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, add_named_task, parse, show


def run(arguments: Sequence[str]) -> int:
    """Evaluate a saved agent."""
    parser = Parser(
        "evaluate",
        "Let a trained agent play greedily, without learning; means with 95% bootstrap intervals over the games.\n"
        "With --trace the games are kept turn by turn, to be looked at and explained later.",
        "multiadvisor evaluate runs/a --games 80 --json\n  multiadvisor evaluate runs/a --games 3 --trace games.trace",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a saved run")
    parser.add_argument("--games", type=int, default=80, metavar="INT", help="games to play (default 80)")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the games (default 0)")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="keep the games, turn by turn, in this file")
    add_named_task(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)
    from multiadvisor.agent import load

    if given.trace is not None:
        from multiadvisor.runs.trace import check_place, record_evaluation

        check_place(given.trace)
    agent = load(given.run, given.named)
    if given.trace is None:
        seen = agent.evaluate(given.games, seeds=(given.seed,))
    else:
        seen, traced = record_evaluation(agent, given.games, given.seed)
        traced.save(given.trace)
    result = {"run": str(given.run), "task": agent.task.name, "planning": agent.settings.planning, **seen.as_dict()}
    if given.trace is not None:
        result["trace"] = str(given.trace)
    best = sorted(seen.advisors.items(), key=lambda item: -abs(item[1]))
    shown = "\n".join(f"  {name:24} {value:8.2f}" for name, value in best[:8])
    more = f"\n  and {len(best) - 8} more (--json has all)" if len(best) > 8 else ""
    kept = "" if given.trace is None else f"\ntrace in {given.trace}"
    show(result, given.json, f"{seen}\nmean return of the advisors, largest magnitude first:\n{shown}{more}{kept}")
    return 0
