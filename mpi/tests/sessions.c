/* All-reduces and broadcasts in sessions, without MPI_Init: sequentially, then by several threads with one session each.
 *
 *     sessions VERDICT THREADS [RANK NAME]
 *
 * With 0 threads, when the second session opens, no other session is open on rank 1 as far as the library knows, but one is on
 * the other ranks, as when threads open sessions in different orders. On the launcher's rank RANK the variable NAME is unset.
 * Rank 0 writes `right` or `wrong` into the file VERDICT.
 *
 * A session that bypasses the library stays open until the end: the library sees its last session close, the MPI library does
 * not. Both MPI libraries fail where a process closes its last session and opens another. MPICH 5.0.2 then initialises MPI again,
 * and creates its world communicator again in MPI_Comm_create_from_group (MPIR_init_comm_world). Ranks whose sessions overlap do
 * not take part. Without libtutti_mpi and with one thread, it hangs in every run where rank 1 does so and the others open the
 * second session first. Where all ranks do so, it hangs in 3 of 190 runs of 10 sessions. A probable reason, the name of shared
 * memory, is fixed by MPICH's commit 338496d7c7, which is not in 5.0.2. docs/mpi-conformance.md has more figures. Open MPI 5.0
 * crashes. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_THREADS 8

static int wrong, rank = -1;

/* Runs collectives on a communicator of all processes, and on a part of it. */
static void communicate(MPI_Session session, const char *tag) {
    MPI_Group group;
    MPI_Comm all, part;
    int ranks, mine, sum = 0, size = 0;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all);
    MPI_Comm_rank(all, &mine);
    MPI_Comm_size(all, &ranks);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
    if (sum != ranks * (ranks - 1) / 2) wrong = 1;
    int last = mine == ranks - 1 ? 77 : 0;
    MPI_Bcast(&last, 1, MPI_INT, ranks - 1, all);
    if (last != 77) wrong = 1;
    MPI_Comm_split(all, mine % 2, mine, &part);
    int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
    MPI_Comm_size(part, &size);
    if (sum != size) wrong = 1;
    rank = mine;
    MPI_Comm_free(&part);
    MPI_Comm_free(&all);
    MPI_Group_free(&group);
}

static MPI_Session opened(int (*open)(MPI_Info, MPI_Errhandler, MPI_Session *)) {
    MPI_Session session;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    open(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    return session;
}

static void *work(void *tag) {
    MPI_Session session = opened(MPI_Session_init);
    communicate(session, tag);
    MPI_Session_finalize(&session);
    return NULL;
}

static void work_unevenly(void) {
    MPI_Session first = opened(MPI_Session_init);
    communicate(first, "tutti/first");
    if (rank == 1) MPI_Session_finalize(&first);
    work("tutti/second");
    if (rank != 1) MPI_Session_finalize(&first);
}

int main(int argc, char **argv) {
    static char tags[MOST_THREADS][32];
    pthread_t thread[MOST_THREADS];
    int threads = argc > 2 ? atoi(argv[2]) : -1;
    if (threads < 0 || threads > MOST_THREADS) return 2;
    const char *name = getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK";
    if (argc > 4 && atoi(getenv(name)) == atoi(argv[3])) unsetenv(argv[4]);
    MPI_Session outer = opened(PMPI_Session_init);
    if (threads == 0)
        work_unevenly();
    else
        work("tutti/alone");
    for (int i = 0; i < threads; i++) {
        snprintf(tags[i], sizeof tags[i], "tutti/%d", i);
        pthread_create(&thread[i], NULL, work, tags[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    PMPI_Session_finalize(&outer);
    if (rank == 0) {
        FILE *file = fopen(argv[1], "w");
        fprintf(file, "%s\n", wrong ? "wrong" : "right");
        fclose(file);
    }
    return wrong;
}
