/* Threads create communicators from overlapping groups of sessions concurrently, and use them.
 *
 *     creations THREADS ROUNDS
 *
 * Each thread has a session. In each round it creates a communicator of all processes but one, which differs between rounds
 * and threads, duplicates it, and runs an all-reduce on both. Rank 0 prints how many creations libtutti_mpi has made by
 * PMPI_Comm_create_group on it, and the maximum at a time on any rank. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 16

static int rounds, rank, ranks;
static atomic_int wrong, creations, in_progress, most;

/* Intercepts the calls of the library. The pause lets other threads arrive. */
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *created) {
    static int (*next)(MPI_Comm, MPI_Group, int, MPI_Comm *);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Comm_create_group");
    int now = ++in_progress, before = most;
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {}
    creations++;
    usleep(2000);
    int error = next(comm, group, tag, created);
    in_progress--;
    return error;
}

static MPI_Session opened(void) {
    MPI_Session session;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    return session;
}

static void reduce(MPI_Comm comm) {
    int one = 1, sum = 0, size;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size) wrong = 1;
}

/* If `absent` equals the number of ranks, all take part. */
static void create(MPI_Group world, int absent, const char *tag) {
    MPI_Group part;
    MPI_Comm comm, duplicate;
    if (absent == rank) return;
    MPI_Group_excl(world, absent < ranks, &absent, &part);
    MPI_Comm_create_from_group(part, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    reduce(comm);
    MPI_Comm_dup(comm, &duplicate);
    reduce(duplicate);
    MPI_Comm_free(&duplicate);
    MPI_Comm_free(&comm);
    MPI_Group_free(&part);
}

static void *work(void *argument) {
    int thread = *(int *)argument;
    char tag[64];
    MPI_Session session = opened();
    MPI_Group world;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    for (int i = 0; i < rounds; i++) {
        snprintf(tag, sizeof tag, "creations/%d/%d", thread, i);
        create(world, (thread + i) % (ranks + 1), tag);
    }
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
    return NULL;
}

static void print_counts(MPI_Group world) {
    MPI_Comm comm;
    MPI_Comm_create_from_group(world, "creations/end", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int largest[] = {wrong, most}, of_all[2];
    MPI_Reduce(largest, of_all, 2, MPI_INT, MPI_MAX, 0, comm);
    if (rank == 0) printf("{\"wrong\": %d, \"creations\": %d, \"most\": %d}\n", of_all[0], creations, of_all[1]);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    int threads = argc == 3 ? atoi(argv[1]) : 0, numbers[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    MPI_Group world;
    if (threads < 1 || threads > MOST_THREADS) return 2;
    rounds = atoi(argv[2]);
    MPI_Session session = opened(); /* MPI is initialised until the end: sessions.c states why */
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &ranks);
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        pthread_create(&thread[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    print_counts(world);
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
    return wrong;
}
