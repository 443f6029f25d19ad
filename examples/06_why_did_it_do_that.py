"""Why did it do that? One game of Pac-Boy, recorded turn by turn, and the turns that matter.

Two agents: empathic advisors finish the game; egocentric ones come to rest, and the explanation says where and why.
"""

from collections import Counter

import multiadvisor as mad
from multiadvisor.runs.trace import explain_turn, read_trace, record, replay

task = mad.make("pac-boy")
for planning in ("empathic", "egocentric"):
    agent = mad.MultiAdvisor(task, planning=planning, gamma=0.9, seed=0).learn(1_000_000, progress=False)

    # 1. Save a game to a file, read it again, and replay it: every state must be the same.
    record(agent, games=1, seed=3).save(f"{planning}.trace")
    trace = read_trace(f"{planning}.trace")
    replay(trace, task)
    end = "finished" if trace.finished[0] else "not finished"
    print(f"{planning}: {trace.turns[0]} turns, score {trace.score[0]:.0f}, {end}, replayed exactly")

    # 2. Explain every turn.
    whys = [explain_turn(agent, trace, 0, turn) for turn in range(trace.turns[0])]
    groups = {focus.name: focus.group for focus in task.foci}
    deciding = Counter(groups[name] for why in whys for name in why.msx_plus)
    alone = sum(len(why.msx_plus) == 1 for why in whys)
    print(f"  who decides: {dict(sorted(deciding.items()))}, a single advisor at {alone} turns")

    # 3. The turns worth a look: the closest choice, and the strongest disagreement.
    narrow = min((turn for turn, why in enumerate(whys) if not why.tie), key=lambda turn: whys[turn].advantage)
    loud = max(range(len(whys)), key=lambda turn: whys[turn].disagreement)
    print(f"  turn {narrow}, narrowest: {whys[narrow].sentence}")
    print(f"  turn {loud}, disagreement {whys[loud].disagreement:.2f}: {whys[loud].sentence}")

    # 4. Is it stuck? The ghosts are taken to stand still, and a passing one may well block the way: how often?
    stuck = sum(bool(why.stuck) for why in whys)
    print(f"  greedy play, as things stand, would never earn at {stuck} of {len(whys)} turns")
    if planning == "egocentric":  # attractors belong to egocentric planning
        cells = Counter(task.board.name(int(x[0])) for x in trace.states(0)[-101:-1])
        held = sum(bool(why.attractor) for why in whys[-100:])
        print(f"  its last 100 turns are spent in {', '.join(cells)}; {held} of them in an attractor")
