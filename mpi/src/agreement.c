/* One collective of fixed size, at MPI_Init and for every communicator created from a session. */
#include "agreement.h"

#include "distance.h"
#include "members.h"
#include "turn.h"
#include "watch.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Fields that must be equal on all ranks, in the order in which they are compared. */
enum { SOUND, PLAN, CONTENTS, EMULATION, CLOCK, COUNTS, REPORT, SIZES, FIELDS };

static const char *const VARIABLES[FIELDS] = {
    [PLAN] = "TUTTI_MPI_PLAN",     [EMULATION] = "TUTTI_MPI_EMULATE", [COUNTS] = "TUTTI_MPI_COUNTS",
    [REPORT] = "TUTTI_MPI_REPORT", [SIZES] = "TUTTI_MPI_RANKS",
};

/* Groups whose processes have agreed with each other: that of MPI_COMM_WORLD, and those of sessions. */
typedef struct agreed agreed;
struct agreed {
    agreed *next;
    MPI_Group group;
    MPI_Comm comm; /* created by the library, with the ranks of `group` */
    uint64_t id;   /* not 0, and equal on all ranks */
    enum tutti_agreed where; /* TUTTI_NOT_AGREED_AT_ALL until every process has added it to its list */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static agreed *first;

enum { TAG = 20033 }; /* unlikely to be used by a program for MPI_Comm_create_group */

void tutti_stop(MPI_Comm comm, int mine, const char *message)
{
    int rank, size, lowest;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    lowest = mine ? rank : size;
    PMPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm);
    if (rank == lowest) {
        fprintf(stderr, "tutti: %s%s\n", rank ? "on a rank other than 0: " : "", message);
        fflush(stderr);
    }
    PMPI_Barrier(comm); /* launchers kill the job when the first rank exits: wait until the message is printed */
    int has_world = 0, all = 0;
    if (!PMPI_Initialized(&has_world) && has_world && !PMPI_Comm_size(MPI_COMM_WORLD, &all) && all == size)
        PMPI_Finalize();
    _exit(2);
}

static uint64_t hash(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static uint64_t hash_of_distance(const tutti_distance *d)
{
    const double values[] = {d->model, d->alpha_p, d->alpha_r, d->beta, d->latency, d->overhead, d->gap, d->byte};
    return d->model ? hash(values, sizeof values) : 0;
}

static void describe(const tutti_settings *settings, const tutti_plan *plan, int error, uint64_t *fields)
{
    memset(fields, 0, FIELDS * sizeof *fields);
    fields[SOUND] = !error;
    fields[PLAN] = settings->plan != NULL;
    fields[CONTENTS] = plan ? plan->crc : 0;
    fields[EMULATION] = hash_of_distance(&settings->distance);
    fields[CLOCK] = settings->distance.model ? tutti_distance_clock() : 0;
    fields[COUNTS] = (uint64_t)settings->counts;
    fields[REPORT] = !settings->report ? 0 : *settings->report ? 1 : 2;
    fields[SIZES] = (uint64_t)settings->any_size;
}

/* Builds rank 0's message about a field that differs on rank `other`. */
static void explain(int field, uint64_t mine, int other, const tutti_settings *settings, char *message)
{
    if (field == CONTENTS)
        tutti_fail(message, TUTTI_BAD_PLAN, "%s: ranks 0 and %d have read different plans: expected the same file on each host",
                   settings->plan, other);
    else if (field == CLOCK)
        tutti_fail(message, TUTTI_BAD_PLAN,
                   "TUTTI_MPI_EMULATE: ranks 0 and %d are on different hosts: expected all ranks on one host, since emulated "
                   "distance needs one clock",
                   other);
    else if (field == PLAN)
        tutti_fail(message, TUTTI_BAD_PLAN,
                   "TUTTI_MPI_PLAN is set on rank %d but not on rank %d: expected on all ranks; mpiexec exports it with -x "
                   "(Open MPI) or -genv (MPICH), and `tutti mpi exec` does so automatically",
                   mine ? 0 : other, mine ? other : 0);
    else
        tutti_fail(message, TUTTI_BAD_PLAN,
                   "%s differs between ranks 0 and %d: expected the same value on all ranks; mpiexec exports it with -x (Open "
                   "MPI) or -genv (MPICH)",
                   VARIABLES[field], other);
}

/* Ends the job for a field that differs between ranks: rank 0 names the first rank that differs. */
static void refuse(MPI_Comm comm, int field, uint64_t mine, const tutti_settings *settings, char *message)
{
    int rank, size;
    uint64_t of_first = mine;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    PMPI_Bcast(&of_first, 1, MPI_UINT64_T, 0, comm);
    int other = mine != of_first ? rank : size;
    PMPI_Allreduce(MPI_IN_PLACE, &other, 1, MPI_INT, MPI_MIN, comm);
    explain(field, mine, other, settings, message);
    tutti_stop(comm, rank == 0, message);
}

__attribute__((noreturn)) static void end_here(const char *problem)
{
    fprintf(stderr, "tutti: %s\n", problem);
    _exit(2);
}

/* Duplicates the communicator by messages that match no collective and no receive of the program: ranks without the library are
 * not disturbed. */
static MPI_Comm isolated(MPI_Comm comm)
{
    MPI_Group group;
    MPI_Comm all = MPI_COMM_NULL;
    tutti_watch *watch = tutti_watch_start();
    int error = PMPI_Comm_group(comm, &group);
    if (!error)
        error = PMPI_Comm_create_group(comm, group, TAG, &all);
    if (!error)
        error = PMPI_Group_free(&group);
    if (!error)
        error = PMPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    tutti_watch_end(watch);
    if (error)
        end_here("the MPI library cannot create a communicator for libtutti_mpi");
    return all;
}

/* Chosen by rank 0: not 0, and different from the ids of other communicators that one of the processes knows. */
static uint64_t common_id(MPI_Comm comm)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t parts[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), (uintptr_t)&now};
    uint64_t id = hash(parts, sizeof parts) | 1;
    if (PMPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm))
        end_here("the MPI library cannot broadcast the id of an agreement");
    return id;
}

/* Stores `all` for the messages of schedules; collective. No process may propose it (channel.c) before all others can find
 * it. */
static void store(MPI_Comm all, enum tutti_agreed where)
{
    agreed *one = malloc(sizeof *one);
    if (!one)
        end_here("out of memory while storing which ranks have agreed");
    one->comm = all;
    one->id = common_id(all);
    if (PMPI_Comm_group(all, &one->group))
        end_here("the MPI library cannot list the ranks of libtutti_mpi's communicator");
    one->where = TUTTI_NOT_AGREED_AT_ALL;
    pthread_mutex_lock(&lock);
    one->next = first;
    first = one;
    pthread_mutex_unlock(&lock);
    if (PMPI_Barrier(all))
        end_here("the MPI library cannot synchronise on libtutti_mpi's communicator");
    pthread_mutex_lock(&lock);
    one->where = where;
    pthread_mutex_unlock(&lock);
}

/* Returns if no rank of `comm`, all of which have the library, has an error, and all settings agree. */
static void compare(MPI_Comm comm, const tutti_settings *settings, const tutti_plan *plan, int error, char *message)
{
    uint64_t fields[FIELDS], ends[2 * FIELDS];
    describe(settings, plan, error, fields);
    for (int i = 0; i < FIELDS; i++) {
        ends[i] = fields[i];
        ends[FIELDS + i] = ~fields[i];
    }
    if (PMPI_Allreduce(MPI_IN_PLACE, ends, 2 * FIELDS, MPI_UINT64_T, MPI_MIN, comm))
        end_here("the MPI library cannot compare the settings of the ranks: MPI_Allreduce fails");
    if (!ends[SOUND])
        tutti_stop(comm, error, message);
    for (int i = SOUND + 1; i < FIELDS; i++)
        if (ends[i] != ~ends[FIELDS + i])
            refuse(comm, i, fields[i], settings, message);
}

/* Waits for all ranks by a dissemination barrier. A rank without the library has posted no receive for its messages, but might
 * have called a collective, with which one of the library would mix. */
static void meet(MPI_Comm comm)
{
    int rank, size, error = 0;
    tutti_watch *watch = tutti_watch_start();
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    for (int step = 1; !error && step < size; step *= 2)
        error = PMPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + step) % size, TAG, NULL, 0, MPI_BYTE, (rank - step + size) % size, TAG,
                              comm, MPI_STATUS_IGNORE);
    tutti_watch_end(watch);
    if (error)
        end_here("the MPI library cannot synchronise the ranks of a new communicator");
}

/* Creates the communicator for the messages of schedules, unless an earlier agreement of these processes has one. Threads agree
 * concurrently, in a different order on each process, so the ranks decide together. */
static void create_in_turn(MPI_Comm comm)
{
    enum { AGREED, FREE, WORDS };
    int size, all_have[WORDS] = {0};
    tutti_turn turn;
    PMPI_Comm_size(comm, &size);
    tutti_turn_enter(&turn, common_id(comm));
    while (!all_have[AGREED] && !all_have[FREE]) {
        all_have[AGREED] = tutti_have_agreed(comm, size) != TUTTI_NOT_AGREED_AT_ALL;
        all_have[FREE] = tutti_turn_take(&turn);
        if (PMPI_Allreduce(MPI_IN_PLACE, all_have, WORDS, MPI_INT, MPI_MIN, comm))
            end_here("the MPI library cannot order the creations of communicators: MPI_Allreduce fails");
        if (!all_have[AGREED] && all_have[FREE])
            store(isolated(comm), TUTTI_AGREED_IN_SESSION);
        tutti_turn_return(&turn);
        if (!all_have[AGREED] && !all_have[FREE])
            sched_yield();
    }
    tutti_turn_leave(&turn);
}

void tutti_agree(MPI_Comm comm, const tutti_settings *settings, const tutti_plan *plan, int error, char *message)
{
    if (comm == MPI_COMM_WORLD) {
        MPI_Comm all = isolated(comm);
        compare(all, settings, plan, error, message);
        if (plan)
            store(all, TUTTI_AGREED_IN_WORLD);
        else
            PMPI_Comm_free(&all);
        return;
    }
    /* No thread of the program has the new communicator yet, so nothing else is in flight on it. */
    meet(comm);
    compare(comm, settings, plan, error, message);
    if (plan)
        create_in_turn(comm);
}

/* Among the agreements that include all members: that of the world, or the most recent one. */
static const agreed *agreement_of(MPI_Comm comm, int size)
{
    const agreed *found = NULL;
    for (const agreed *one = first; one; one = one->next)
        if (one->where > (found ? found->where : TUTTI_NOT_AGREED_AT_ALL) && tutti_members_are_in(comm, size, one->group))
            found = one;
    return found;
}

uint64_t tutti_agreed_id(MPI_Comm comm, int size)
{
    pthread_mutex_lock(&lock);
    const agreed *of = agreement_of(comm, size);
    uint64_t id = of ? of->id : 0;
    pthread_mutex_unlock(&lock);
    return id;
}

MPI_Comm tutti_agreed_comm(uint64_t id)
{
    MPI_Comm comm = MPI_COMM_NULL;
    pthread_mutex_lock(&lock);
    for (const agreed *one = first; one; one = one->next)
        if (one->id == id)
            comm = one->comm;
    pthread_mutex_unlock(&lock);
    return comm;
}

enum tutti_agreed tutti_have_agreed(MPI_Comm comm, int size)
{
    pthread_mutex_lock(&lock);
    const agreed *of = agreement_of(comm, size);
    enum tutti_agreed where = of ? of->where : TUTTI_NOT_AGREED_AT_ALL;
    pthread_mutex_unlock(&lock);
    return where;
}

void tutti_agreement_end(void)
{
    pthread_mutex_lock(&lock);
    while (first) {
        agreed *next = first->next;
        PMPI_Group_free(&first->group);
        PMPI_Comm_free(&first->comm);
        free(first);
        first = next;
    }
    pthread_mutex_unlock(&lock);
}
