"""Why did it do that? One episode of Pac-Boy, recorded step by step, and the steps that matter.

Two agents: empathic advisors finish the episode; egocentric ones come to rest, and the explanation says where and why.
"""

from collections import Counter

import multiadvisor as mad
from multiadvisor.analysis.episodes import record
from multiadvisor.analysis.trace_file import read_trace
from multiadvisor.runs.trace import explain_step, replay

task = mad.make("pac-boy")
for planning in ("empathic", "egocentric"):
    agent = mad.MultiAdvisor(task, planning=planning, gamma=0.9, seed=0).learn(1_000_000, progress=False)

    # 1. Save an episode to a file, read it again, and replay it: every state must be the same.
    record(agent, episodes=1, seed=3).save(f"{planning}.trace")
    trace = read_trace(f"{planning}.trace")
    replay(trace, task)
    end = "terminated" if trace.terminated[0] else "not finished"
    print(f"{planning}: {trace.length[0]} steps, score {trace.score[0]:.0f}, {end}, replayed exactly")

    # 2. Explain every step.
    whys = [explain_step(agent, trace, 0, step) for step in range(trace.length[0])]
    groups = {advisor.name: advisor.group for advisor in task.advisors}
    deciding = Counter(groups[name] for why in whys for name in why.msx_plus)
    alone = sum(len(why.msx_plus) == 1 for why in whys)
    print(f"  who decides: {dict(sorted(deciding.items()))}, a single advisor at {alone} steps")

    # 3. The steps worth a look: the closest choice, and the strongest disagreement.
    narrow = min((step for step, why in enumerate(whys) if not why.tie), key=lambda step: whys[step].advantage)
    loud = max(range(len(whys)), key=lambda step: whys[step].disagreement)
    print(f"  step {narrow}, narrowest: {whys[narrow].sentence}")
    print(f"  step {loud}, disagreement {whys[loud].disagreement:.2f}: {whys[loud].sentence}")

    # 4. Is it stuck? The ghosts are taken to stand still, and a passing one may well block the way: how often?
    stuck = sum(bool(why.stuck) for why in whys)
    print(f"  greedy play, as things stand, would never earn at {stuck} of {len(whys)} steps")
    if planning == "egocentric":  # attractors belong to egocentric planning
        cells = Counter(task.board.name(int(x[0])) for x in trace.states(0)[-101:-1])
        held = sum(bool(why.attractor) for why in whys[-100:])
        print(f"  its last 100 steps are spent in {', '.join(cells)}; {held} of them in an attractor")
