"""`multiadvisor evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multiadvisor.commands.parsing import Parser, parse, show


def run(arguments: Sequence[str]) -> int:
    """Evaluate a saved agent."""
    parser = Parser(
        "evaluate",
        "Let a trained agent play greedily, without learning; means with 95% bootstrap intervals over the games.",
        "multiadvisor evaluate runs/a --games 80 --json",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a saved run")
    parser.add_argument("--games", type=int, default=80, metavar="INT", help="games to play (default 80)")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the games (default 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parse(parser, arguments)
    from multiadvisor.agent import load

    agent = load(given.run)
    seen = agent.evaluate(given.games, seeds=(given.seed,))
    result = {"run": str(given.run), "task": agent.task.name, "planning": agent.settings.planning, **seen.as_dict()}
    best = sorted(seen.advisors.items(), key=lambda item: -abs(item[1]))
    shown = "\n".join(f"  {name:24} {value:8.2f}" for name, value in best[:8])
    more = f"\n  and {len(best) - 8} more (--json has all)" if len(best) > 8 else ""
    show(result, given.json, f"{seen}\nmean return of the advisors, largest first:\n{shown}{more}")
    return 0
