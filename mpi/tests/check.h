/* Shared by the parts of the checker: elements with known layouts, operations with reference implementations, the schedules'
 * oracle, and cases. The checker is independent of the library: it uses only MPI and tutti_mpi_counts. */
#ifndef TUTTI_CHECK_H
#define TUTTI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- random numbers: a hash, so that every rank can compute every other rank's data ------------------------------ */
uint64_t mixed(uint64_t value);
uint64_t drawn(uint64_t *state);                /* the next number of a stream */
int64_t drawn_below(uint64_t *state, int64_t end);

/* --- elements: the unit of counts --------------------------------------------------------------------------------- */
enum kind {
    SIGNED, UNSIGNED, ADDRESS, FLOATING, COMPLEX, BOOLEAN, BYTES, PAIR, /* predefined, by the operations they allow */
    TEXT, /* predefined, only moved: no operation is valid */
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
    ptrdiff_t end; /* the upper bound, where the bytes of an element end; only of derived datatypes */
    int blocks;
    struct block block[MOST_BLOCKS]; /* in the order of the type map */
    size_t size;                     /* of all blocks */
    size_t significant;              /* bytes of a number: of an 80-bit long double 10 of 16 */
    int64_t most;                    /* more elements would overlap */
    bool committed;                  /* by the checker, to be freed */
    bool strange;                    /* MPI libraries write outside such elements when they reduce: never forward them */
};
extern struct element *elements;
extern int element_count;
void make_elements(void);
void free_elements(void);
const struct element *element_of(MPI_Datatype type); /* NULL if it is not in the list */
int word_partners(const struct element *element, int index); /* the index of another element with as many words */

/* Bytes from a buffer's first to its last touched byte; `before`: how far the first precedes the address passed to MPI. */
size_t span_of(const struct element *element, int64_t count, ptrdiff_t *before);
void unpacked(const struct element *element, const unsigned char *values, int64_t count, unsigned char *base);
void packed(const struct element *element, const unsigned char *base, int64_t count, unsigned char *values);
void cleaned(const struct element *element, unsigned char *values, int64_t count); /* clears padding inside numbers */

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
/* right = left op right on `count` elements in memory layout, by MPI's arithmetic or the user-defined function. */
void combined(enum operation operation, const struct element *element, void *left, void *right, int64_t count);
/* left = left op right on one packed element, by the checker's arithmetic. */
void folded(enum operation operation, const struct element *element, unsigned char *left, const unsigned char *right);
/* Values that a rank contributes, packed. Exact ones give the same result in every order. */
void generated(const struct element *element, enum operation operation, bool exact, uint64_t seed, int64_t first,
               int64_t count, unsigned char *values);
/* Magnitude of a value, for the bound on the effect of reordering: added for a sum, multiplied for a product. */
long double magnitude_of(const struct element *element, const unsigned char *value);
/* Whether two packed results differ by no more than reordering `ranks` operands of this magnitude can cause. */
bool within_reordering(enum operation operation, const struct element *element, const unsigned char *got,
                       const unsigned char *expected, long double magnitude, int ranks);
int unknown_types_seen(void); /* by user-defined functions, since the start */
int misaligned_operands_seen(void);
extern _Thread_local bool aligned_operands; /* whether this thread's calls pass aligned elements to user-defined functions */

/* --- the oracle: the effect of the plan's schedules, computed by Python from their ops ---------------------------- */
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
    int *tokens; /* postfix: a rank's contribution, or -1 to reduce the two topmost */
};
struct oracle {
    enum collective collective;
    int ranks, chunks;
    bool moves, rank_order;
    bool same, same_order; /* all ranks reduce identically: up to exchanged operands, or strictly */
    char name[256];
    int *sends;         /* per rank */
    struct sent **sent; /* [rank][send] */
    int trees;
    struct tree *tree;
    int *result; /* [rank * chunks + chunk]: index of the tree, or -1 */
    struct oracle *next;
};
void read_oracles(const char *path);
void free_oracles(void);
const struct oracle *oracle_for(enum collective collective, int ranks);
bool without_oracles(void); /* the MPI library itself is checked: no call is expected to be covered */
int64_t chunk_start(int64_t chunk, int64_t chunks, int64_t elements);

/* --- one case ----------------------------------------------------------------------------------------------------- */
struct test_case {
    enum collective collective;
    const struct element *element, *partner; /* partner: the receiver's element, which may differ */
    enum operation operation;
    int64_t count;
    int root;
    bool in_place, exact, large;    /* large: the MPI_..._c call */
    bool counted, ragged, spread;   /* MPI_Reduce_scatter, MPI_Allgatherv; with unequal counts; with gaps, last rank first */
    uint64_t seed;
};
struct group { /* a communicator under test */
    MPI_Comm comm;
    int rank, ranks;
    int *world; /* ranks of MPI_COMM_WORLD */
};
/* Runs a case; on a failure returns false and writes `text`. `covered`: whether a schedule was expected to perform it. */
bool run_case(const struct test_case *test, const struct group *group, bool *covered, char *text, size_t capacity);
bool is_covered(const struct test_case *test, const struct group *group);
void describe(const struct test_case *test, const struct group *group, char *text, size_t capacity);
/* A reduction's elements from `first` on, reduced in rank order by the checker's arithmetic, packed. */
void expected_in_order(const struct test_case *test, int ranks, int64_t first, int64_t count, unsigned char *values,
                     long double *magnitude);
/* The same as the schedule reduces them for `rank`, by MPI's arithmetic or the user-defined function. */
void expected_by_schedule(const struct test_case *test, const struct group *group, int64_t first, int64_t count,
                        unsigned char *values);
int64_t shard_elements(const struct test_case *test, int rank); /* of a reduce_scatter or all_gather */
int64_t shard_start(const struct test_case *test, int rank);
int64_t shard_place(const struct test_case *test, int rank, int ranks); /* in the receive buffer of an all_gather */
int64_t total_elements(const struct test_case *test, int ranks);
uint64_t seed_of(const struct test_case *test, int rank);

/* --- random cases, groups ------------------------------------------------------------------------------------------- */
extern int large_calls; /* 1 if the MPI library has MPI_..._c */
/* A case of this collective: the `index`-th pair of datatype and operation, or a random one if index < 0. */
struct test_case drawn_case(enum collective collective, const struct group *group, int64_t index, uint64_t seed);
int64_t pairs_of(enum collective collective); /* of datatype and operation */
bool collective_reduces(enum collective collective);
/* The communicators of one of several partitions of the world: two groups of any shape, ranks shuffled. */
struct group partitioned(int partition, uint64_t seed);
struct group group_of(MPI_Comm comm); /* takes ownership of the communicator */
void group_free(struct group *group);
int partition_count(void);
void polite_barrier(MPI_Comm comm); /* yields the core while it waits, whatever the MPI library does */

/* --- counting ------------------------------------------------------------------------------------------------------ */
void counting_start(void); /* finds tutti_mpi_counts; ends the job if the library is not loaded */
void counting_end(void);
bool counts_as_expected(const struct test_case *test, const struct group *group, bool covered, char *text, size_t capacity);
bool totals_as_expected(char *text, size_t capacity); /* of all calls; for threads, which count concurrently */
extern uint64_t *expected_messages, *expected_bytes; /* per world rank, of all cases so far */
extern bool counts_each_call;                        /* initially true */

#endif
