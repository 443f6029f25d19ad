/* Pac-Boy with multi-advisor learning, written by hand for this one task: the native reference of `benchmark kernel`.
 *
 * The same algorithm as the general kernel, with everything it may know in advance built in: four actions, one gamma,
 * weights of 1, two ghosts that share a table, the rules "paper", fruit with probability 1/2. It makes the same random
 * draws and the same additions in the same order, so its tables must equal the kernel's to the last bit; the benchmark
 * refuses to compare speeds where they do not.
 */
#include <math.h>
#include <stdint.h>

#define CELLS 76
#define FRUITS 75
#define GHOSTS 2
#define LIMIT 300
#define TINY 1e-200

enum { EGOCENTRIC, AGNOSTIC, EMPATHIC };
enum { CHOICE, FORESIGHT, EPISODE, WORLD = 16, PLACE = 1 << 20 };

static inline uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}
static inline uint64_t draw(uint64_t key, uint64_t purpose) { return mix(key + purpose * 0xD1342543DE82EF95u); }
static inline uint32_t below(uint64_t word, uint32_t count) { return ((word & 0xFFFFFFFFu) * count) >> 32; }

static inline int greedy(const double total[4], uint64_t word) {
    double best = total[0];
    int choice = 0, ties = 1;
    for (int a = 1; a < 4; a++) {
        if (total[a] > best) best = total[a], choice = a, ties = 1;
        else if (total[a] == best) ties++;
    }
    if (ties > 1) {
        int rank = below(word, ties);
        for (int a = choice; a < 4; a++)
            if (total[a] == best && rank-- == 0) return a;
    }
    return choice;
}

static inline void nudge(double *value, double alpha, double target) {
    double updated = *value + alpha * (target - *value);
    *value = fabs(updated) > TINY ? updated : 0.0;
}

static inline double larger(double a, double b) { return a > b ? a : b; }

/* ghost [CELLS * CELLS][4] and fruit [CELLS][FRUITS][4]: what is looked at together lies together. */
static inline __attribute__((always_inline)) int64_t run(
    const int64_t neighbour[CELLS][4], const int64_t fruit_at[CELLS], int64_t start, const int64_t ghost_start[GHOSTS],
    double (*restrict ghost)[4], double (*restrict fruit)[FRUITS][4], uint64_t key, double gamma, double alpha,
    double epsilon, int64_t steps, const int planning) {
    int64_t episodes = 0;
    int step_of_episode = LIMIT, left = 0, cell = 0, monster[GHOSTS] = {0, 0};
    int place[FRUITS]; /* the active fruit advisors, rising */
    double target[FRUITS], total[4];

    for (int64_t step = 0; step < steps; step++) {
        uint64_t now = mix(key + (uint64_t)step * 0x9E3779B97F4A7C15u);
        if (step_of_episode == LIMIT || left == 0) {
            uint64_t deal = draw(now, EPISODE);
            left = 0;
            for (int f = 0; f < FRUITS; f++) {
                place[left] = f;
                left += (draw(deal, PLACE + f) & 0xFFFFFFFFu) < 0x80000000u;
            }
            if (left == 0) place[left++] = below(draw(deal, PLACE + FRUITS), FRUITS);
            cell = start, monster[0] = ghost_start[0], monster[1] = ghost_start[1], step_of_episode = 0;
            for (int a = 0; a < 4; a++) {
                double t = ghost[cell * CELLS + monster[0]][a] + ghost[cell * CELLS + monster[1]][a];
                for (int i = 0; i < left; i++) t += fruit[cell][place[i]][a];
                total[a] = t;
            }
        }
        uint64_t word = draw(now, CHOICE);
        int action = (double)(word >> 32) * (1.0 / 4294967296.0) < epsilon ? (int)below(word, 4) : greedy(total, word);

        int before = cell, old[GHOSTS] = {monster[0], monster[1]};
        double reward[GHOSTS];
        cell = neighbour[cell][action];
        for (int g = 0; g < GHOSTS; g++) {
            monster[g] = neighbour[old[g]][below(draw(now, WORLD + g), 4)];
            reward[g] = old[g] == cell || monster[g] == cell ? -10.0 : 0.0;
        }
        int slot = 0, eaten = fruit_at[cell];
        while (slot < left && place[slot] < eaten) slot++;
        if (eaten >= 0 && slot < left && place[slot] == eaten) {
            nudge(&fruit[before][eaten][action], alpha, 1.0);
            left--;
            for (int i = slot; i < left; i++) place[i] = place[i + 1];
        }
        double *here[GHOSTS] = {ghost[before * CELLS + old[0]], ghost[before * CELLS + old[1]]};
        step_of_episode++;
        if (left == 0) { /* the episode is over: nothing to bootstrap on */
            for (int g = 0; g < GHOSTS; g++) nudge(&here[g][action], alpha, reward[g]);
            episodes++;
            continue;
        }

        const double *next[GHOSTS] = {ghost[cell * CELLS + monster[0]], ghost[cell * CELLS + monster[1]]};
        double t0 = next[0][0] + next[1][0], t1 = next[0][1] + next[1][1];
        double t2 = next[0][2] + next[1][2], t3 = next[0][3] + next[1][3];
        for (int i = 0; i < left; i++) {
            const double *q = fruit[cell][place[i]];
            t0 += q[0], t1 += q[1], t2 += q[2], t3 += q[3];
            if (planning == EGOCENTRIC) target[i] = larger(larger(larger(q[0], q[1]), q[2]), q[3]);
            if (planning == AGNOSTIC) target[i] = (((q[0] + q[1]) + q[2]) + q[3]) / 4;
        }
        total[0] = t0, total[1] = t1, total[2] = t2, total[3] = t3;
        int ahead = planning == EMPATHIC ? greedy(total, draw(now, FORESIGHT)) : 0;
        double goal[GHOSTS];
        for (int g = 0; g < GHOSTS; g++) {
            const double *q = next[g];
            double value = planning == EGOCENTRIC ? larger(larger(larger(q[0], q[1]), q[2]), q[3])
                         : planning == AGNOSTIC   ? (((q[0] + q[1]) + q[2]) + q[3]) / 4
                                                  : q[ahead];
            goal[g] = reward[g] + gamma * value;
        }
        if (planning == EMPATHIC)
            for (int i = 0; i < left; i++) target[i] = fruit[cell][place[i]][ahead];
        for (int g = 0; g < GHOSTS; g++) nudge(&here[g][action], alpha, goal[g]);
        for (int i = 0; i < left; i++) nudge(&fruit[before][place[i]][action], alpha, gamma * target[i]);
        if (before == cell) { /* only then can a changed row be looked at again */
            double t = next[0][action] + next[1][action];
            for (int i = 0; i < left; i++) t += fruit[cell][place[i]][action];
            total[action] = t;
        }
        if (step_of_episode == LIMIT) episodes++;
    }
    return episodes;
}

int64_t play(const int64_t neighbour[CELLS][4], const int64_t fruit_at[CELLS], int64_t start,
             const int64_t ghost_start[GHOSTS], double (*ghost)[4], double (*fruit)[FRUITS][4], uint64_t key,
             double gamma, double alpha, double epsilon, int64_t steps, int planning) {
    /* One copy per planning, each without the others' branches. */
#define RUN(p) run(neighbour, fruit_at, start, ghost_start, ghost, fruit, key, gamma, alpha, epsilon, steps, p)
    return planning == EGOCENTRIC ? RUN(EGOCENTRIC) : planning == AGNOSTIC ? RUN(AGNOSTIC) : RUN(EMPATHIC);
}
