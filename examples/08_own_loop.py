"""Your own training loop: the loop steps the environment, the agent only acts and observes."""

import gymnasium

import multiadvisor as mad

# ---- the ten lines that matter ---------------------------------------------------------------------------------------
env = gymnasium.make("CliffWalking-v1", max_episode_steps=200)
agent = mad.MultiAdvisor(mad.Task.from_gymnasium("CliffWalking-v1", max_episode_steps=200), gamma=0.99, seed=0)
observation, _ = env.reset(seed=0)
for _ in range(30_000):
    action = agent.act(observation, explore=True)
    following, reward, terminated, truncated, info = env.step(action)
    agent.observe(observation, action, reward, following, terminated, truncated, info)
    observation = env.reset()[0] if terminated or truncated else following
print(f"{agent.steps} transitions observed; {agent.evaluate(episodes=20)}")
# ----------------------------------------------------------------------------------------------------------------------

agent.save("own-loop")
print(f"loaded, it has observed {mad.load('own-loop').steps}")
