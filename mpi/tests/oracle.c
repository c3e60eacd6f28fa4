/* Reads the oracle of the plan's schedules (tests/mpi/support/oracle.py): the sends of each rank, and trees of folds. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const collective_names[COLLECTIVES] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                                   "gather",     "scatter",        "all_to_all", "barrier"};

static struct oracle *oracles;

/* The file is written by the test suite: an invalid one ends the job. */
static int number(FILE *file) {
    int value;
    if (fscanf(file, "%d", &value) != 1) {
        fprintf(stderr, "check: the oracle file is truncated or invalid: expected a number\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return value;
}

static void read_sends(FILE *file, struct oracle *oracle) {
    oracle->sends = calloc((size_t)oracle->ranks, sizeof(int));
    oracle->sent = calloc((size_t)oracle->ranks, sizeof(struct sent *));
    for (int rank = 0; rank < oracle->ranks; rank++) {
        oracle->sends[rank] = number(file);
        oracle->sent[rank] = calloc((size_t)oracle->sends[rank] + 1, sizeof(struct sent));
        for (int i = 0; i < oracle->sends[rank]; i++) {
            int peer = number(file), first = number(file), chunks = number(file);
            oracle->sent[rank][i] = (struct sent){peer, first, chunks};
        }
    }
}

static void read_trees(FILE *file, struct oracle *oracle) {
    oracle->trees = number(file);
    oracle->tree = calloc((size_t)oracle->trees + 1, sizeof(struct tree));
    for (int t = 0; t < oracle->trees; t++) {
        struct tree *tree = &oracle->tree[t];
        tree->length = number(file);
        tree->tokens = calloc((size_t)tree->length + 1, sizeof(int));
        int depth = 0;
        for (int i = 0; i < tree->length; i++) {
            tree->tokens[i] = number(file);
            depth += tree->tokens[i] < 0 ? -1 : 1;
            if (depth > tree->depth) tree->depth = depth;
        }
    }
    int results = oracle->trees ? oracle->ranks * oracle->chunks : 0;
    oracle->result = calloc((size_t)results + 1, sizeof(int));
    for (int i = 0; i < results; i++) oracle->result[i] = number(file);
}

static void read_oracle(FILE *file) {
    struct oracle *oracle = calloc(1, sizeof *oracle);
    oracle->collective = (enum collective)number(file);
    oracle->ranks = number(file);
    oracle->chunks = number(file);
    oracle->moves = number(file) != 0;
    oracle->rank_order = number(file) != 0;
    oracle->same = number(file) != 0;
    oracle->same_order = number(file) != 0;
    if (fscanf(file, "%255s", oracle->name) != 1) MPI_Abort(MPI_COMM_WORLD, 3);
    read_sends(file, oracle);
    read_trees(file, oracle);
    oracle->next = oracles;
    oracles = oracle;
}

void read_oracles(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "check: cannot read the oracle file %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int left = number(file); left > 0; left--) read_oracle(file);
    fclose(file);
}

void free_oracles(void) {
    while (oracles != NULL) {
        struct oracle *oracle = oracles;
        oracles = oracle->next;
        for (int rank = 0; rank < oracle->ranks; rank++) free(oracle->sent[rank]);
        for (int t = 0; t < oracle->trees; t++) free(oracle->tree[t].tokens);
        free(oracle->sends);
        free(oracle->sent);
        free(oracle->tree);
        free(oracle->result);
        free(oracle);
    }
}

bool without_oracles(void) { return oracles == NULL; }

const struct oracle *oracle_for(enum collective collective, int ranks) {
    for (const struct oracle *oracle = oracles; oracle != NULL; oracle = oracle->next)
        if (oracle->collective == collective && oracle->ranks == ranks) return oracle;
    return NULL;
}

int64_t chunk_start(int64_t chunk, int64_t chunks, int64_t total) {
    return (int64_t)((__int128)chunk * total / chunks);
}
