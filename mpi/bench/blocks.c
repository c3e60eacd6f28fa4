/* Blocks of back-to-back collectives that all ranks start together, as in section 5.2 of Ruefenacht et al. 2017. The cases
 * of a group take turns, block by block, so that other load on the machine affects all of them equally. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { TOOK, LATE, WRONG, FIGURES, TRIES = 4, WIDEST = 10 };

typedef struct {
    const bench_group *group;
    const bench_case *cases;
    tutti_program **programs; /* per case; NULL if the case needs none */
    MPI_Comm *comms;          /* per case; the run's unless the case forces an algorithm */
    bench_data *data;
    int64_t *of_all; /* on rank 0: the figures of every rank */
    int64_t *stored; /* for back-to-back blocks: all figures of this rank, then on rank 0 those of every rank */
} measured;

static int run_once(const bench_run *run, const measured *m, int which)
{
    char message[TUTTI_MESSAGE_SIZE];
    message[0] = 0; /* clearing the entire buffer would be measured */
    switch (m->cases[which].implementation) {
    case BENCH_LIBRARY:
    case BENCH_FORCED:
        return bench_library(m->group, m->data, run, m->comms[which]);
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

/* Runs one block on this rank: its time from the agreed start, the lateness, and the number of wrong elements. */
static void run_block(bench_run *run, const measured *m, int which, int64_t *figures)
{
    int64_t start;
    const bench_case *one = &m->cases[which];
    if (run->job->check)
        bench_data_poison(m->data, m->group, run->rank);
    if (one->implementation == BENCH_FORCED)
        bench_controls_write(run->job, (int)one->schedule);
    if (run->job->aligned)
        figures[LATE] = bench_start(run, &start);
    else
        start = bench_now(), figures[LATE] = 0;
    for (int i = 0; i < run->job->each; i++)
        bench_check(run_once(run, m, which), "the collective");
    figures[TOOK] = bench_now() - start;
    if (one->implementation == BENCH_FORCED)
        bench_controls_restore(run->job, (int)one->schedule);
    figures[WRONG] = run->job->check ? bench_data_wrong(m->data, m->group, run->rank, run->ranks) : 0;
}

typedef struct {
    int64_t most, least, sum, late, wrong;
} summed;

static summed summarise(const bench_run *run, const int64_t *of_all)
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

/* Widens the window while ranks start late, and narrows it slowly again: on a busy machine lateness has other causes. */
static void fit_window(bench_run *run, int is_late)
{
    const int64_t first = run->job->window_ns;
    run->window_ns = is_late ? run->window_ns * 3 / 2 : run->window_ns - (run->window_ns - first) / 16;
    if (run->window_ns > WIDEST * first)
        run->window_ns = WIDEST * first;
}

/* Repeats a block that a rank starts late, each time with a longer window. */
static void measure_block(bench_run *run, const measured *m, int group, int which, int block)
{
    for (int tries = 1;; tries++) {
        int64_t figures[FIGURES];
        summed s = {0};
        run_block(run, m, which, figures);
        bench_gather(run, figures, m->of_all, FIGURES);
        if (run->rank == 0)
            s = summarise(run, m->of_all);
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

/* Rotates the order of the cases: what precedes a case determines the contents of its caches. */
static int in_turn(int turn, int block, int cases)
{
    return (turn + (block > 0 ? block : 0)) % cases;
}

/* Runs blocks back to back: ranks of a crowded machine then spend their time in collectives, and exchange the figures at the
 * end. */
static void measure_back_to_back(bench_run *run, const measured *m, int group)
{
    const int cases = m->group->cases, each = run->job->blocks * cases * FIGURES;
    int64_t spare[FIGURES];
    for (int block = -run->job->warmup; block < run->job->blocks; block++)
        for (int turn = 0; turn < cases; turn++) {
            const int which = in_turn(turn, block, cases);
            run_block(run, m, which, block < 0 ? spare : m->stored + (block * cases + which) * FIGURES);
        }
    int64_t *every = m->stored + each;
    bench_gather(run, m->stored, every, each);
    for (int block = 0; run->rank == 0 && block < run->job->blocks; block++)
        for (int which = 0; which < cases; which++) {
            for (int rank = 0; rank < run->ranks; rank++)
                memcpy(m->of_all + rank * FIGURES, every + (int64_t)rank * each + (block * cases + which) * FIGURES,
                       FIGURES * sizeof(int64_t));
            const summed s = summarise(run, m->of_all);
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
    char message[TUTTI_MESSAGE_SIZE] = "";
    for (int i = 0; i < m->group->cases; i++) {
        const bench_case *one = &m->cases[i];
        if (one->implementation != BENCH_SCHEDULE)
            continue;
        if (!run->plan)
            bench_fail("job file: a case uses a schedule, but the job names no plan");
        if (tutti_program_compile(run->plan, one->schedule, run->comm, &m->programs[i], message))
            bench_fail("%s", message);
    }
}

/* Creates the communicators of cases that force an algorithm. */
static void create_communicators(const bench_run *run, const measured *m)
{
    for (int i = 0; i < m->group->cases; i++) {
        m->comms[i] = run->comm;
        if (m->cases[i].implementation != BENCH_FORCED)
            continue;
        bench_controls_write(run->job, (int)m->cases[i].schedule);
        bench_check(PMPI_Comm_dup(run->comm, &m->comms[i]), "MPI_Comm_dup");
        bench_controls_restore(run->job, (int)m->cases[i].schedule);
    }
}

static void free_communicators(const measured *m)
{
    for (int i = 0; i < m->group->cases; i++)
        if (m->cases[i].implementation == BENCH_FORCED)
            PMPI_Comm_free(&m->comms[i]);
}

static void measure_group(bench_run *run, int index)
{
    const bench_group *group = &run->job->groups[index];
    const size_t figures = (size_t)run->job->blocks * (size_t)group->cases * FIGURES;
    const size_t capacity = run->job->aligned ? 1 : figures * (size_t)(run->rank == 0 ? run->ranks + 1 : 1);
    measured m = {
        .group = group,
        .cases = run->job->cases + group->first,
        .programs = calloc((size_t)group->cases, sizeof(tutti_program *)),
        .comms = calloc((size_t)group->cases, sizeof(MPI_Comm)),
        .data = bench_data_new(group, run->rank, run->ranks),
        .of_all = calloc((size_t)run->ranks * FIGURES, sizeof(int64_t)),
        .stored = calloc(capacity, sizeof(int64_t)),
    };
    if (!m.programs || !m.comms || !m.of_all || !m.stored)
        bench_fail("out of memory for a group");
    compile_cases(run, &m);
    create_communicators(run, &m);
    if (run->job->aligned)
        measure_at_agreed_times(run, &m, index);
    else
        measure_back_to_back(run, &m, index);
    bench_clock_write(run, index);
    for (int i = 0; i < group->cases; i++)
        tutti_program_free(m.programs[i]);
    free_communicators(&m);
    free(m.programs);
    free(m.comms);
    free(m.of_all);
    free(m.stored);
    bench_data_free(m.data);
}

void bench_blocks(bench_run *run)
{
    for (int index = 0; index < run->job->n_groups; index++)
        measure_group(run, index);
}
