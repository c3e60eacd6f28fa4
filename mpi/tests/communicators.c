/* Communicators that no plan can cover, and communicators in unusual states. Exits with 0 on every rank if all are correct.
 *
 *     communicators spawned   two more processes, without the library, join by MPI_Intercomm_merge.
 *
 *     communicators spawned-inherited     the same, with whatever environment the MPI library passes on.
 *
 *     communicators freed     an attribute's delete callback calls collectives on the communicator being freed.
 *
 *     communicators inter     collectives on an intercommunicator of the even and the odd ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

static void reduce(MPI_Comm comm, const char *what) {
    int rank, ranks, sum = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum == ranks * (ranks - 1) / 2) return;
    fprintf(stderr, "communicators: WRONG: %s: %d\n", what, sum);
    wrong = 1;
}

static void spawn(const char *program, int with_library) {
    char *through[] = {"-u", "LD_PRELOAD", (char *)program, "spawned", NULL}, *inherited[] = {"spawned", NULL};
    MPI_Comm parent, children, all;
    MPI_Comm_get_parent(&parent);
    int is_child = parent != MPI_COMM_NULL;
    if (!is_child)
        MPI_Comm_spawn(with_library ? program : "env", with_library ? inherited : through, 2, MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(is_child ? parent : children, is_child, &all);
    reduce(all, "after a merge");
    reduce(all, "after a merge, again");
    reduce(MPI_COMM_WORLD, "the spawned processes' world");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(is_child ? &parent : &children);
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key;
    (void)value;
    (void)extra;
    reduce(comm, "while it is freed");
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

/* Attributes set before the library's attribute and after it: MPI libraries delete them in either order. */
static void let_free(void) {
    int early, late;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &early, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &late, NULL);
    for (int i = 0; i < 3; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_attr(comm, early, NULL);
        reduce(comm, "before it is freed");
        MPI_Comm_set_attr(comm, late, NULL);
        if (i == 2)
            MPI_Comm_disconnect(&comm);
        else
            MPI_Comm_free(&comm);
        reduce(MPI_COMM_WORLD, "after another one was freed");
    }
    MPI_Comm_free_keyval(&early);
    MPI_Comm_free_keyval(&late);
}

static void between_groups(void) {
    int rank, ranks, sum = -1, expected = 0;
    MPI_Comm half, both;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 7, &both);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    MPI_Barrier(both);
    int *counts = calloc((size_t)ranks, sizeof *counts), *places = calloc((size_t)ranks, sizeof *places);
    int *others = calloc((size_t)ranks, sizeof *others), remote;
    MPI_Comm_remote_size(both, &remote);
    for (int i = 0; i < remote; i++) {
        counts[i] = 1;
        places[i] = remote - 1 - i;
    }
    MPI_Allgatherv(&rank, 1, MPI_INT, others, counts, places, MPI_INT, both);
    for (int i = 0; i < remote; i++)
        if (others[remote - 1 - i] != 2 * i + !(rank % 2)) wrong = 1;
    free(counts);
    free(places);
    free(others);
    for (int i = !(rank % 2); i < ranks; i += 2) expected += i;
    if (sum != expected) wrong = 1;
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    if (strcmp(argv[1], "freed") == 0)
        let_free();
    else if (strcmp(argv[1], "inter") == 0)
        between_groups();
    else
        spawn(argv[0], strcmp(argv[1], "spawned-inherited") == 0);
    MPI_Finalize();
    return wrong;
}
