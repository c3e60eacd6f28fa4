/* Collectives of more elements, and of more bytes, than fit into an int: checks every byte.
 *
 *     huge BYTES
 *
 * Each collective moves or reduces slightly more than BYTES, described as single bytes (a count that only the MPI_..._c
 * functions can express), as ints, as large blocks, and as elements with gaps. Two ranks suffice; each uses up to four times
 * as much memory. Every call has a separate communicator, since buffers persist with the communicator. Prints JSON. */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, TAKEN = 3, GAPPED = 4 };

/* A description of a payload: `count` elements of `bytes` in `extent`. */
struct form {
    const char *name;
    MPI_Datatype type;
    int64_t count;
    size_t bytes, extent;
    bool large; /* by the MPI_..._c function */
    bool adds;  /* reductions are defined on it */
};

static int rank, ranks, cases, failures;

#if MPI_VERSION >= 4
#define EITHER(form, large_call, usual_call) ((form)->large ? large_call : usual_call)
enum { LARGE_CALLS = 1 };
#else
#define EITHER(form, large_call, usual_call) usual_call
enum { LARGE_CALLS = 0 };
#endif

/* Contributions repeat after a prime number of elements, so that a shift by a power of two is detected. */
enum { PERIOD = 65521 };
struct pattern {
    unsigned char *bytes;
    size_t period; /* bytes */
};

static unsigned char value(int of, uint32_t at) {
    return (unsigned char)((at * 2654435761u + (uint32_t)of * 0x35000000u) >> 24);
}

static void *allocated(size_t bytes) {
    void *memory = calloc(bytes + 1, 1);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
    return memory;
}

static unsigned char *zeroed(int64_t count, const struct form *form) {
    return allocated((size_t)count * form->extent);
}

static struct pattern bytes_of(int of) {
    struct pattern pattern = {allocated(PERIOD), PERIOD};
    for (uint32_t i = 0; i < PERIOD; i++) pattern.bytes[i] = value(of, i);
    return pattern;
}

/* Numbers of rank `of`, or the sums over all ranks if `of` equals `ranks`: bytes wrap around, ints do not overflow. */
static struct pattern numbers_of(int of, const struct form *form) {
    struct pattern pattern = {allocated(PERIOD * form->bytes), PERIOD * form->bytes};
    for (uint32_t i = 0; i < PERIOD; i++) {
        int number = of < ranks ? value(of, i) : 0;
        for (int each = 0; of == ranks && each < ranks; each++) number += value(each, i);
        if (form->bytes == 1)
            pattern.bytes[i] = (unsigned char)number;
        else
            memcpy(pattern.bytes + i * sizeof number, &number, sizeof number);
    }
    return pattern;
}

/* Writes bytes `at` and following of a pattern to `base`, or compares them; returns how many runs differ. */
static int64_t dense(unsigned char *base, const struct pattern *pattern, int64_t at, int64_t length, bool write) {
    int64_t wrong = 0;
    while (length > 0) {
        int64_t from = at % (int64_t)pattern->period, run = (int64_t)pattern->period - from;
        if (run > length) run = length;
        if (write)
            memcpy(base, pattern->bytes + from, (size_t)run);
        else
            wrong += memcmp(base, pattern->bytes + from, (size_t)run) != 0;
        base += run;
        at += run;
        length -= run;
    }
    return wrong;
}

/* The same with gaps behind the elements, which must stay 0. */
static int64_t gapped(unsigned char *base, const struct pattern *pattern, int64_t at, int64_t count, bool write) {
    size_t from = (size_t)(at % (int64_t)pattern->period);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++, base += GAPPED) {
        for (int k = 0; k < TAKEN; k++) {
            wrong += !write && base[k] != pattern->bytes[from];
            if (write) base[k] = pattern->bytes[from];
            from = from + 1 == pattern->period ? 0 : from + 1;
        }
        wrong += base[TAKEN] != 0;
    }
    return wrong;
}

/* Elements first .. first + count of rank `of`. */
static int64_t moved(unsigned char *base, const struct form *form, int64_t first, int64_t count, int of, bool write) {
    struct pattern pattern = bytes_of(of);
    int64_t at = first * (int64_t)form->bytes;
    int64_t wrong = form->bytes == form->extent ? dense(base, &pattern, at, count * (int64_t)form->bytes, write)
                                                : gapped(base, &pattern, at, count, write);
    free(pattern.bytes);
    return wrong;
}

static int64_t added(unsigned char *base, const struct form *form, int64_t first, int64_t count, bool sum) {
    struct pattern pattern = numbers_of(sum ? ranks : rank, form);
    int64_t width = (int64_t)form->bytes, wrong = dense(base, &pattern, first * width, count * width, !sum);
    free(pattern.bytes);
    return wrong;
}

static void judge(const char *what, const struct form *form, int code, int64_t wrong) {
    cases++;
    if (code == MPI_SUCCESS && wrong == 0) return;
    failures++;
    fprintf(stderr, "huge: %s of %s, rank %d: the call returned %d, %" PRId64 " runs or bytes are wrong\n", what,
            form->name, rank, code, wrong);
}

/* --- reductions ------------------------------------------------------------------------------------------------- */

static void all_reduce(const struct form *form, MPI_Comm comm) {
    unsigned char *data = zeroed(form->count, form);
    added(data, form, 0, form->count, false);
    int code = EITHER(form, MPI_Allreduce_c(MPI_IN_PLACE, data, form->count, form->type, MPI_SUM, comm),
                      MPI_Allreduce(MPI_IN_PLACE, data, (int)form->count, form->type, MPI_SUM, comm));
    judge("all_reduce", form, code, added(data, form, 0, form->count, true));
    free(data);
}

static void reduce(const struct form *form, MPI_Comm comm) {
    unsigned char *data = zeroed(form->count, form);
    const int root = ranks - 1;
    void *from = rank == root ? MPI_IN_PLACE : data, *to = rank == root ? data : NULL;
    added(data, form, 0, form->count, false);
    int code = EITHER(form, MPI_Reduce_c(from, to, form->count, form->type, MPI_SUM, root, comm),
                      MPI_Reduce(from, to, (int)form->count, form->type, MPI_SUM, root, comm));
    judge("reduce", form, code, rank == root ? added(data, form, 0, form->count, true) : 0);
    free(data);
}

static void reduce_scatter(const struct form *form, MPI_Comm comm) {
    int64_t shard = form->count / ranks + 1;
    unsigned char *data = zeroed(shard * ranks, form), *own = zeroed(shard, form);
    added(data, form, 0, shard * ranks, false);
    int code = EITHER(form, MPI_Reduce_scatter_block_c(data, own, shard, form->type, MPI_SUM, comm),
                      MPI_Reduce_scatter_block(data, own, (int)shard, form->type, MPI_SUM, comm));
    judge("reduce_scatter", form, code, added(own, form, shard * rank, shard, true));
    free(data);
    free(own);
}

/* --- movement --------------------------------------------------------------------------------------------------- */

static void broadcast(const struct form *form, MPI_Comm comm) {
    unsigned char *data = zeroed(form->count, form);
    const int root = ranks - 1;
    if (rank == root) moved(data, form, 0, form->count, root, true);
    int code = EITHER(form, MPI_Bcast_c(data, form->count, form->type, root, comm),
                      MPI_Bcast(data, (int)form->count, form->type, root, comm));
    judge("broadcast", form, code, moved(data, form, 0, form->count, root, false));
    free(data);
}

static int64_t all_shards(unsigned char *data, const struct form *form, int64_t shard, int64_t first) {
    int64_t wrong = 0;
    for (int of = 0; of < ranks; of++)
        wrong += moved(data + (size_t)(shard * of) * form->extent, form, first, shard, of, false);
    return wrong;
}

static void all_gather(const struct form *form, MPI_Comm comm) {
    int64_t shard = form->count / ranks + 1;
    unsigned char *data = zeroed(shard * ranks, form);
    moved(data + (size_t)(shard * rank) * form->extent, form, 0, shard, rank, true);
    int code = EITHER(form, MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_BYTE, data, shard, form->type, comm),
                      MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, data, (int)shard, form->type, comm));
    judge("all_gather", form, code, all_shards(data, form, shard, 0));
    free(data);
}

static void all_to_all(const struct form *form, MPI_Comm comm) {
    int64_t shard = form->count / ranks + 1;
    unsigned char *data = zeroed(shard * ranks, form), *got = zeroed(shard * ranks, form);
    moved(data, form, 0, shard * ranks, rank, true);
    int code = EITHER(form, MPI_Alltoall_c(data, shard, form->type, got, shard, form->type, comm),
                      MPI_Alltoall(data, (int)shard, form->type, got, (int)shard, form->type, comm));
    judge("all_to_all", form, code, all_shards(got, form, shard, shard * rank));
    free(data);
    free(got);
}

static void gather(const struct form *form, MPI_Comm comm) {
    int64_t shard = form->count / ranks + 1;
    unsigned char *data = zeroed(shard, form), *got = zeroed(rank == 0 ? shard * ranks : 0, form);
    moved(data, form, 0, shard, rank, true);
    int code = EITHER(form, MPI_Gather_c(data, shard, form->type, got, shard, form->type, 0, comm),
                      MPI_Gather(data, (int)shard, form->type, got, (int)shard, form->type, 0, comm));
    judge("gather", form, code, rank == 0 ? all_shards(got, form, shard, 0) : 0);
    free(data);
    free(got);
}

static void scatter(const struct form *form, MPI_Comm comm) {
    int64_t shard = form->count / ranks + 1;
    unsigned char *data = zeroed(rank == 0 ? shard * ranks : 0, form), *got = zeroed(shard, form);
    if (rank == 0) moved(data, form, 0, shard * ranks, 0, true);
    int code = EITHER(form, MPI_Scatter_c(data, shard, form->type, got, shard, form->type, 0, comm),
                      MPI_Scatter(data, (int)shard, form->type, got, (int)shard, form->type, 0, comm));
    judge("scatter", form, code, moved(got, form, shard * rank, shard, 0, false));
    free(data);
    free(got);
}

static void every_collective(const struct form *form) {
    typedef void (*collective)(const struct form *, MPI_Comm);
    static const collective all[] = {broadcast, all_gather, gather, scatter, all_to_all, all_reduce, reduce, reduce_scatter};
    enum { PACKED = 4, MOVING = 5 }; /* packed payloads need twice the memory, so all_to_all is omitted */
    unsigned moving = form->bytes == form->extent ? MOVING : PACKED, count = form->adds ? sizeof all / sizeof *all : moving;
    for (unsigned i = 0; i < count; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        all[i](form, comm);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) {
        fprintf(stderr, "huge: expected one argument: BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int64_t bytes = atoll(argv[1]);
    MPI_Datatype block, three, with_gaps;
    MPI_Type_contiguous(BLOCK, MPI_CHAR, &block);
    MPI_Type_contiguous(TAKEN, MPI_CHAR, &three);
    MPI_Type_create_resized(three, 0, GAPPED, &with_gaps);
    MPI_Type_commit(&block);
    MPI_Type_commit(&with_gaps);
    const struct form forms[] = {
        {"bytes", MPI_UINT8_T, bytes + 5, 1, 1, true, true},
        {"ints", MPI_INT, bytes / (int64_t)sizeof(int) + 5, sizeof(int), sizeof(int), false, true},
        {"blocks", block, bytes / BLOCK + 5, BLOCK, BLOCK, false, false},
        {"elements with gaps", with_gaps, bytes / TAKEN + 5, TAKEN, GAPPED, false, false},
    };
    for (unsigned i = LARGE_CALLS ? 0 : 1; i < sizeof forms / sizeof *forms; i++) every_collective(&forms[i]);
    int sum = failures;
    PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("{\"cases\": %d, \"failures\": %d}\n", cases, sum);
    MPI_Type_free(&block);
    MPI_Type_free(&three);
    MPI_Type_free(&with_gaps);
    MPI_Finalize();
    return sum != 0;
}
