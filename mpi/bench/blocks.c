/* Blocks of collectives in a row, begun by all ranks at once, as section 5.2 of Ruefenacht et al. 2017 measures. The
 * cases of a group take turns, block by block, so that whatever else the machine does meets all of them alike. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { TOOK, LATE, WRONG, FIGURES, TRIES = 4, WIDEST = 10 };

typedef struct {
    const bench_group *group;
    const bench_case *cases;
    tutti_program **programs; /* of each case; NULL where none is needed */
    bench_data *data;
    int64_t *of_all; /* on rank 0: the figures of every rank */
    int64_t *kept;   /* where blocks follow one another: this rank's figures of all, then on rank 0 those of every rank */
} measured;

static int run_once(const bench_run *run, const measured *m, int which)
{
    char message[TUTTI_MESSAGE_ROOM];
    message[0] = 0; /* zeroing all of it would be measured too */
    switch (m->cases[which].way) {
    case BENCH_OWN:
        return bench_own(m->group, m->data, run);
    case BENCH_MPI:
        return bench_as_application(m->group, m->data, run);
    default: {
        const tutti_call call = bench_call(m->group, m->data, run->ranks);
        const int error = tutti_execute(m->programs[which], &call, message);
        if (error)
            bench_fail("%s", message[0] ? message : "tutti_execute failed");
        return MPI_SUCCESS;
    }
    }
}

/* One block of this rank: how long it took from the agreed start, how late it began, what was wrong. */
static void run_block(bench_run *run, const measured *m, int which, int64_t *figures)
{
    int64_t start;
    if (run->job->check)
        bench_data_poison(m->data, m->group, run->rank);
    if (run->job->aligned)
        figures[LATE] = bench_begin(run, &start);
    else
        start = bench_now(), figures[LATE] = 0;
    for (int i = 0; i < run->job->each; i++)
        bench_check(run_once(run, m, which), "the collective");
    figures[TOOK] = bench_now() - start;
    figures[WRONG] = run->job->check ? bench_data_wrong(m->data, m->group, run->rank, run->ranks) : 0;
}

typedef struct {
    int64_t most, least, sum, late, wrong;
} summed;

static summed sum_up(const bench_run *run, const int64_t *of_all)
{
    summed s = {.least = INT64_MAX};
    for (int rank = 0; rank < run->ranks; rank++) {
        const int64_t *f = of_all + rank * FIGURES;
        s.most = f[TOOK] > s.most ? f[TOOK] : s.most;
        s.least = f[TOOK] < s.least ? f[TOOK] : s.least;
        s.late = f[LATE] > s.late ? f[LATE] : s.late;
        s.sum += f[TOOK];
        s.wrong += f[WRONG];
    }
    return s;
}

static void write_block(const bench_run *run, int group, int which, int block, const summed *s, int tries)
{
    fprintf(run->out,
            "{\"kind\":\"block\",\"group\":%d,\"case\":%d,\"block\":%d,\"last_ns\":%lld,\"first_ns\":%lld,"
            "\"mean_ns\":%lld,\"late_ns\":%lld,\"tries\":%d,\"wrong\":%lld}\n",
            group, which, block, (long long)s->most, (long long)s->least, (long long)(s->sum / run->ranks),
            (long long)s->late, tries, (long long)s->wrong);
    fflush(run->out);
}

/* The window grows while ranks come late, and shrinks again, slowly: on a busy machine being late has other causes. */
static void fit_window(bench_run *run, int is_late)
{
    const int64_t first = run->job->window_ns;
    run->window_ns = is_late ? run->window_ns * 3 / 2 : run->window_ns - (run->window_ns - first) / 16;
    if (run->window_ns > WIDEST * first)
        run->window_ns = WIDEST * first;
}

/* Measures a block again while ranks begin it late, each time with a longer window. */
static void measure_block(bench_run *run, const measured *m, int group, int which, int block)
{
    for (int tries = 1;; tries++) {
        int64_t figures[FIGURES];
        summed s = {0};
        run_block(run, m, which, figures);
        bench_gather(run, figures, m->of_all, FIGURES);
        if (run->rank == 0)
            s = sum_up(run, m->of_all);
        bench_share(run, &s.late, sizeof s.late);
        const int is_late = s.late > run->job->tolerance_ns;
        fit_window(run, is_late);
        if (is_late && tries < TRIES)
            continue;
        if (run->rank == 0 && block >= 0)
            write_block(run, group, which, block, &s, tries);
        return;
    }
}

/* Each case has its turn in every place: what comes before it leaves caches as it pleases. */
static int in_turn(int turn, int block, int cases)
{
    return (turn + (block > 0 ? block : 0)) % cases;
}

/* Blocks one after another. Ranks of a crowded machine then use what time they have for collectives, and what they
 * would otherwise say to each other in between comes at the end. */
static void measure_in_a_row(bench_run *run, const measured *m, int group)
{
    const int cases = m->group->cases, each = run->job->blocks * cases * FIGURES;
    int64_t spare[FIGURES];
    for (int block = -run->job->warmup; block < run->job->blocks; block++)
        for (int turn = 0; turn < cases; turn++) {
            const int which = in_turn(turn, block, cases);
            run_block(run, m, which, block < 0 ? spare : m->kept + (block * cases + which) * FIGURES);
        }
    int64_t *every = m->kept + each;
    bench_gather(run, m->kept, every, each);
    for (int block = 0; run->rank == 0 && block < run->job->blocks; block++)
        for (int which = 0; which < cases; which++) {
            for (int rank = 0; rank < run->ranks; rank++)
                memcpy(m->of_all + rank * FIGURES, every + (int64_t)rank * each + (block * cases + which) * FIGURES,
                       FIGURES * sizeof(int64_t));
            const summed s = sum_up(run, m->of_all);
            write_block(run, group, which, block, &s, 1);
        }
}

static void measure_at_agreed_times(bench_run *run, const measured *m, int group)
{
    int turns = 0;
    for (int block = -run->job->warmup; block < run->job->blocks; block++)
        for (int turn = 0; turn < m->group->cases; turn++) {
            if (turns++ % BENCH_TURNS_PER_CLOCK == 0)
                bench_clock_measure(run);
            measure_block(run, m, group, in_turn(turn, block, m->group->cases), block);
        }
    bench_clock_measure(run);
}

static void compile_cases(const bench_run *run, measured *m)
{
    char message[TUTTI_MESSAGE_ROOM] = "";
    for (int i = 0; i < m->group->cases; i++) {
        const bench_case *one = &m->cases[i];
        if (one->way != BENCH_SCHEDULE)
            continue;
        if (!run->plan)
            bench_fail("job file: a schedule is asked for and no plan is named");
        if (tutti_program_compile(run->plan, one->schedule, run->comm, &m->programs[i], message))
            bench_fail("%s", message);
    }
}

static void measure_group(bench_run *run, int index)
{
    const bench_group *group = &run->job->groups[index];
    const size_t figures = (size_t)run->job->blocks * (size_t)group->cases * FIGURES;
    const size_t room = run->job->aligned ? 1 : figures * (size_t)(run->rank == 0 ? run->ranks + 1 : 1);
    measured m = {
        .group = group,
        .cases = run->job->cases + group->first,
        .programs = calloc((size_t)group->cases, sizeof(tutti_program *)),
        .data = bench_data_new(group, run->rank, run->ranks),
        .of_all = calloc((size_t)run->ranks * FIGURES, sizeof(int64_t)),
        .kept = calloc(room, sizeof(int64_t)),
    };
    if (!m.programs || !m.of_all || !m.kept)
        bench_fail("no memory for a group");
    compile_cases(run, &m);
    if (run->job->aligned)
        measure_at_agreed_times(run, &m, index);
    else
        measure_in_a_row(run, &m, index);
    bench_clock_write(run, index);
    for (int i = 0; i < group->cases; i++)
        tutti_program_free(m.programs[i]);
    free(m.programs);
    free(m.of_all);
    free(m.kept);
    bench_data_free(m.data);
}

void bench_blocks(bench_run *run)
{
    for (int index = 0; index < run->job->n_groups; index++)
        measure_group(run, index);
}
