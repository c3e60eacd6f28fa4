/* What the parts of the checker share: elements with known layouts, operations with references of their own, the
 * schedules' oracle, and cases. Nothing here is part of the library; it sees MPI and tutti_mpi_counts alone. */
#ifndef TUTTI_CHECK_H
#define TUTTI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- random numbers: a hash, so that every rank knows every other rank's data ---------------------------------- */
uint64_t mixed(uint64_t value);
uint64_t drawn(uint64_t *state);                /* the next number of a stream */
int64_t drawn_below(uint64_t *state, int64_t end);

/* --- elements: what a count counts ------------------------------------------------------------------------------ */
enum kind {
    SIGNED, UNSIGNED, ADDRESS, FLOATING, COMPLEX, BOOLEAN, BYTES, PAIR, /* predefined, by the operations they allow */
    TEXT, /* predefined, moved alone: no operation is valid */
    WORDS /* derived: blocks of four bytes */
};
struct block {
    ptrdiff_t offset;
    size_t bytes;
};
#define MOST_BLOCKS 4
struct element {
    const char *name;
    enum kind kind;
    MPI_Datatype type;
    ptrdiff_t extent;
    ptrdiff_t end; /* the upper bound, where bytes of an element end; of derived ones alone */
    int blocks;
    struct block block[MOST_BLOCKS]; /* in the order of the type map */
    size_t size;                     /* of all blocks */
    size_t significant;              /* of a number, in bytes: of an 80-bit long double 10 of 16 */
    int64_t most;                    /* more elements would overlap */
    bool committed;                  /* by us, to be freed */
    bool strange;                    /* MPIs' own reductions write outside of such elements: not to be passed on */
};
extern struct element *elements;
extern int element_count;
void make_elements(void);
void free_elements(void);
const struct element *element_of(MPI_Datatype type); /* NULL where it is none of ours */
int word_partners(const struct element *element, int index); /* another element of as many words: its number */

/* Bytes from a buffer's first to its last touched byte, and how far before the address given to MPI the first is. */
size_t span_of(const struct element *element, int64_t count, ptrdiff_t *before);
void unpacked(const struct element *element, const unsigned char *values, int64_t count, unsigned char *base);
void packed(const struct element *element, const unsigned char *base, int64_t count, unsigned char *values);
void cleaned(const struct element *element, unsigned char *values, int64_t count); /* padding inside numbers to 0 */

/* --- operations ------------------------------------------------------------------------------------------------- */
enum operation {
    MAXIMUM, MINIMUM, SUM, PRODUCT, LAND, BAND, LOR, BOR, LXOR, BXOR, MINLOC, MAXLOC,
    ADDED,    /* user-defined, commutative: word by word, modulo 2^32 */
    COMPOSED, /* user-defined, not commutative: matrices or affine maps modulo a prime */
    OPERATIONS
};
extern const char *const operation_names[OPERATIONS];
void make_operations(void);
void free_operations(void);
MPI_Op operation_of(enum operation operation);
bool operation_fits(enum operation operation, const struct element *element);
bool operation_rounds(enum operation operation, const struct element *element);
/* right = left op right on `count` elements in their own layout, by MPI's arithmetic or the user's function. */
void combined(enum operation operation, const struct element *element, void *left, void *right, int64_t count);
/* left = left op right on one packed element, by arithmetic of our own. */
void folded(enum operation operation, const struct element *element, unsigned char *left, const unsigned char *right);
/* Values that a rank contributes, packed. Exact ones give the same result in every order. */
void generated(const struct element *element, enum operation operation, bool exact, uint64_t seed, int64_t first,
               int64_t count, unsigned char *values);
/* How large a value is, for the bound on what reordering can do; of a sum they add up, of a product they multiply. */
long double magnitude_of(const struct element *element, const unsigned char *value);
/* Whether two packed results differ by no more than reordering `ranks` operands of this magnitude can do. */
bool within_reordering(enum operation operation, const struct element *element, const unsigned char *got,
                       const unsigned char *want, long double magnitude, int ranks);
int unknown_types_seen(void); /* by user functions, since the start */
int misaligned_operands_seen(void);
extern _Thread_local bool aligned_operands; /* whether this thread's calls promise user functions aligned elements: a schedule's do */

/* --- the oracle: what the schedules of the plan do, written by Python from their ops ----------------------------- */
enum collective {
    ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, GATHER, SCATTER, ALL_TO_ALL, BARRIER, COLLECTIVES
};
extern const char *const collective_names[COLLECTIVES];
struct sent {
    int peer;
    int64_t first, chunks;
};
struct tree {
    int length, depth;
    int *tokens; /* postfix: a rank's contribution, or -1 to fold the two above */
};
struct oracle {
    enum collective collective;
    int ranks, chunks;
    bool moves, rank_order;
    bool same, same_order; /* all ranks fold alike: but for exchanged operands, or just so */
    char name[256];
    int *sends;         /* per rank */
    struct sent **sent; /* [rank][send] */
    int trees;
    struct tree *tree;
    int *result; /* [rank * chunks + chunk]: the tree, or -1 */
    struct oracle *next;
};
void read_oracles(const char *path);
void free_oracles(void);
const struct oracle *oracle_for(enum collective collective, int ranks);
bool without_oracles(void); /* the MPI itself is checked: nothing is to be covered */
int64_t chunk_begins(int64_t chunk, int64_t chunks, int64_t elements);

/* --- one case ----------------------------------------------------------------------------------------------------- */
struct test_case {
    enum collective collective;
    const struct element *element, *partner; /* partner: the receiving side's, where it may differ */
    enum operation operation;
    int64_t count;
    int root;
    bool in_place, exact, large, ragged; /* large: the MPI_..._c call; ragged: MPI_Reduce_scatter */
    uint64_t seed;
};
struct group { /* a communicator under test */
    MPI_Comm comm;
    int rank, ranks;
    int *world; /* ranks of MPI_COMM_WORLD */
};
/* Runs it; false and a text where something was wrong. `covered`: whether the library was to do it by a schedule. */
bool run_case(const struct test_case *test, const struct group *group, bool *covered, char *text, size_t room);
bool is_covered(const struct test_case *test, const struct group *group);
void describe(const struct test_case *test, const struct group *group, char *text, size_t room);
/* A reduction's elements from `first` on, folded in the order of the ranks by our own arithmetic, packed. */
void wanted_in_order(const struct test_case *test, int ranks, int64_t first, int64_t count, unsigned char *values,
                     long double *magnitude);
/* The same as the schedule folds them for `rank`, by MPI's arithmetic or the user's function. */
void wanted_by_schedule(const struct test_case *test, const struct group *group, int64_t first, int64_t count,
                        unsigned char *values);
int64_t shard_elements(const struct test_case *test, int rank);       /* of a reduce_scatter */
int64_t shard_begins(const struct test_case *test, int rank);
int64_t total_elements(const struct test_case *test, int ranks);
uint64_t seed_of(const struct test_case *test, int rank);

/* --- drawing cases, groups ----------------------------------------------------------------------------------------- */
extern int large_calls; /* 1 where the MPI has MPI_..._c */
/* A case of this collective: the `index`-th pair of type and operation, or any where index < 0. */
struct test_case drawn_case(enum collective collective, const struct group *group, int64_t index, uint64_t seed);
int64_t pairs_of(enum collective collective); /* of type and operation */
bool collective_reduces(enum collective collective);
/* Communicators for one of several ways to part the world: two groups of any shape, ranks shuffled. */
struct group parted(int way, uint64_t seed);
struct group group_of(MPI_Comm comm); /* takes the communicator over */
void group_free(struct group *group);
int ways_to_part(void);
void polite_barrier(MPI_Comm comm); /* waits without taking the core from others, whatever the MPI does */

/* --- counting ------------------------------------------------------------------------------------------------------ */
void counting_begins(void); /* finds tutti_mpi_counts; ends the job where the library is not there */
void counting_ends(void);
bool counts_as_expected(const struct test_case *test, const struct group *group, bool covered, char *text, size_t room);
bool totals_as_expected(char *text, size_t room); /* of all calls; for threads, whose calls cannot be told apart */
extern uint64_t *expected_messages, *expected_bytes; /* per rank of the world, of all cases so far */
extern bool counts_each_call;                        /* true at first */

#endif
