/* Translates calls of collectives into the terms of schedules. */
#include "demand.h"

#include <stddef.h>

/* The unit of data movement and of packed data. */
static const tutti_type *byte_type(void)
{
    static const tutti_type byte = {.handle = MPI_BYTE, .size = 1, .extent = 1, .true_extent = 1, .span = 1, .named = 1, .dense = 1};
    return &byte;
}

/* count x each, or -1 beyond 2^63 - 1. */
static int64_t times(int64_t count, int64_t each)
{
    int64_t product;
    return count < 0 || each < 0 || __builtin_mul_overflow(count, each, &product) ? -1 : product;
}

/* The total number of elements of all shards; -1 on overflow. */
static int64_t sum_of_shards(const tutti_call *call, int size, tutti_demand *demand)
{
    if (!call->recvcounts)
        return times(size, call->recvcount);
    int64_t sum = 0;
    for (int i = 0; i < size; i++) {
        if (call->recvcounts[i] < 0 || __builtin_add_overflow(sum, call->recvcounts[i], &sum))
            return -1;
        if (call->recvcounts[i] != call->recvcounts[0])
            demand->shards = call->recvcounts;
    }
    return sum;
}

static int look_up_operation(const tutti_call *call, tutti_type_cache *cache, tutti_demand *demand)
{
    int error = tutti_type_describe(call->recvtype, &cache->received);
    if (!error)
        error = tutti_operation_describe(call->op, &cache->operation);
    if (error)
        return error;
    int cached = cache->paired && cache->paired_type == call->recvtype && cache->paired_op == call->op;
    if (!cached) {
        if (!tutti_operation_fits(&cache->operation, &cache->received)) {
            demand->refusal = TUTTI_OPERATION;
            return TUTTI_NOT_COVERED;
        }
        cache->strict = !tutti_operation_exchangeable(&cache->operation, &cache->received);
        cache->exact = tutti_operation_exact(&cache->operation, &cache->received);
        cache->paired_type = call->recvtype;
        cache->paired_op = call->op;
        cache->paired = cache->operation.named && cache->received.named;
    }
    demand->op = call->op;
    demand->strict = cache->strict;
    demand->exact = cache->exact;
    demand->commutative = cache->operation.commutative;
    demand->lasting = cache->paired;
    demand->unit = &cache->received;
    return cache->received.extent < 0 ? TUTTI_NOT_COVERED : 0;
}

static int of_reduction(const tutti_call *call, int rank, int size, tutti_type_cache *cache, tutti_demand *demand)
{
    int error = look_up_operation(call, cache, demand);
    if (error)
        return error;
    demand->elements = call->recvcount;
    if (demand->collective == TUTTI_REDUCE_SCATTER)
        demand->elements = sum_of_shards(call, size, demand);
    int receives = demand->collective != TUTTI_REDUCE || rank == call->root;
    /* The standard forbids identical buffers; the library treats them as MPI_IN_PLACE, like MPI libraries that accept them. If
     * one rank forwarded such a call, the others would wait for its messages. */
    demand->in_place = receives && (call->sendbuf == MPI_IN_PLACE || call->sendbuf == call->recvbuf);
    demand->data = demand->in_place ? call->recvbuf : call->sendbuf;
    demand->result = receives ? call->recvbuf : NULL;
    int64_t bytes = times(demand->elements, demand->unit->size);
    if (bytes < 0 || times(demand->elements, demand->unit->extent) < 0)
        return TUTTI_NOT_COVERED;
    demand->bytes = (uint64_t)bytes;
    return 0;
}

/* How many shards each of the caller's significant buffers holds. */
typedef struct {
    int64_t sent, received;
} shares;

static shares shares_of(const tutti_demand *demand, int rank, int size)
{
    int root = rank == demand->root;
    switch (demand->collective) {
    case TUTTI_ALL_GATHER:
        return (shares){demand->in_place ? 0 : 1, size};
    case TUTTI_ALL_TO_ALL:
        return (shares){demand->in_place ? 0 : size, size};
    case TUTTI_GATHER:
        return (shares){demand->in_place ? 0 : 1, root ? size : 0};
    case TUTTI_SCATTER:
        return (shares){root ? size : 0, demand->in_place ? 0 : 1};
    case TUTTI_BROADCAST:
        return (shares){0, 1};
    default:
        return (shares){0, 0};
    }
}

/* Describes the packing of `count` elements per shard; its bytes are 0 if they are contiguous and in order already. */
static int packing_of(const void *buffer, int64_t count, MPI_Datatype handle, tutti_type *type, int64_t shards,
                      tutti_packing *packing, int64_t *shard_bytes)
{
    if (shards == 0)
        return 0;
    int error = tutti_type_describe(handle, type);
    if (error)
        return error;
    *shard_bytes = times(count, type->size);
    int64_t bytes = times(*shard_bytes, shards), elements = times(count, shards);
    int64_t extent = type->extent < 0 ? -type->extent : type->extent;
    if (*shard_bytes < 0 || bytes < 0 || elements < 0 || times(elements, extent) < 0)
        return TUTTI_NOT_COVERED;
    int in_order = type->named ? type->dense && type->true_lb == 0 : tutti_type_in_order(handle);
    /* The cast serves both uses: data to be packed is never written to. */
    *packing = (tutti_packing){.buffer = (void *)(uintptr_t)buffer,
                               .count = elements,
                               .type = handle,
                               .bytes = in_order ? 0 : bytes};
    return 0;
}

/* The same for the result of an all_gather with a count for each rank; also sets demand->shards. The counts in bytes are the
 * same on all ranks, but datatypes and displacements are not. */
static int packing_of_shards(const tutti_call *call, int size, tutti_type *type, tutti_demand *demand, tutti_packing *packing,
                             int64_t *bytes)
{
    int64_t elements = sum_of_shards(call, size, demand), start = 0;
    int error = packing_of(call->recvbuf, elements, call->recvtype, type, 1, packing, bytes);
    if (error)
        return error;
    demand->shard_unit = type->size;
    if (type->size == 0) /* then counts may differ from those of another rank */
        demand->shards = NULL;
    for (int i = 0; call->recvdispls && i < size; i++) {
        if (call->recvcounts[i] && call->recvdispls[i] != start) {
            packing->counts = call->recvcounts;
            packing->displacements = call->recvdispls;
            packing->blocks = size;
            packing->bytes = *bytes;
        }
        start += call->recvcounts[i];
    }
    return 0;
}

/* Decides which ranks pack their contribution and which unpack the result. */
static void assign_packing(tutti_demand *demand, int rank, const tutti_packing *sent, const tutti_packing *received)
{
    demand->pack = *sent;
    demand->unpack = *received;
    if (demand->collective == TUTTI_BROADCAST) {
        if (rank == demand->root) {
            demand->pack = *received;
            demand->unpack.bytes = 0;
        }
    } else if (demand->in_place && demand->collective != TUTTI_SCATTER) {
        demand->pack = *received;
    }
}

static int of_movement(const tutti_call *call, int rank, int size, tutti_type_cache *cache, tutti_demand *demand)
{
    int root = rank == call->root;
    demand->in_place = demand->collective == TUTTI_BROADCAST || call->sendbuf == MPI_IN_PLACE;
    if (demand->collective == TUTTI_SCATTER)
        demand->in_place = root && call->recvbuf == MPI_IN_PLACE;
    shares share = shares_of(demand, rank, size);
    tutti_packing sent = {0}, received = {0};
    int64_t shard = 0;
    int error = packing_of(call->sendbuf, call->sendcount, call->sendtype, &cache->sent, share.sent, &sent, &shard);
    int complete = demand->collective == TUTTI_BROADCAST || call->recvcounts; /* `shard` is the payload */
    if (!error && call->recvcounts)
        error = packing_of_shards(call, size, &cache->received, demand, &received, &shard);
    else if (!error)
        error = packing_of(call->recvbuf, call->recvcount, call->recvtype, &cache->received, share.received, &received,
                           &shard);
    if (error)
        return error;
    demand->unit = byte_type();
    demand->elements = complete ? shard : times(shard, size);
    if (demand->elements < 0)
        return TUTTI_NOT_COVERED;
    demand->bytes = (uint64_t)demand->elements;
    demand->data = share.sent ? call->sendbuf : call->recvbuf;
    demand->result = share.received ? call->recvbuf : NULL;
    demand->lasting = (!share.sent || cache->sent.named) && (!share.received || cache->received.named);
    assign_packing(demand, rank, &sent, &received);
    return 0;
}

static int is_buffer(const void *buffer, int64_t count, MPI_Datatype type)
{
    return buffer != MPI_IN_PLACE && count >= 0 && type != MPI_DATATYPE_NULL;
}

/* Whether the arguments that schedules use are valid. */
static int is_valid(const tutti_call *call, uint32_t collective, int rank, int size)
{
    if (tutti_is_rooted(collective) && (call->root < 0 || call->root >= size))
        return 0;
    int root = !tutti_is_rooted(collective) || rank == call->root;
    int receives = is_buffer(call->recvbuf, call->recvcount, call->recvtype);
    int sends = is_buffer(call->sendbuf, call->sendcount, call->sendtype);
    switch (collective) {
    case TUTTI_BARRIER:
        return 1;
    case TUTTI_BROADCAST:
        return receives;
    case TUTTI_GATHER:
        return root ? receives && (sends || call->sendbuf == MPI_IN_PLACE) : sends;
    case TUTTI_SCATTER:
        return root ? sends && (receives || call->recvbuf == MPI_IN_PLACE) : receives;
    case TUTTI_ALL_GATHER:
    case TUTTI_ALL_TO_ALL:
        return receives && (sends || call->sendbuf == MPI_IN_PLACE);
    default:
        return call->op != MPI_OP_NULL && call->op != MPI_REPLACE && call->op != MPI_NO_OP &&
               is_buffer(root ? call->recvbuf : NULL, call->recvcount, call->recvtype) &&
               (root || call->sendbuf != MPI_IN_PLACE);
    }
}

/* Clears member by member: compilers clear a struct of this size by an instruction slower than the rest of the function. */
static void clear(tutti_demand *demand)
{
    demand->in_place = 0;
    demand->elements = 0;
    demand->bytes = 0;
    demand->shards = NULL;
    demand->shard_unit = 1;
    demand->op = MPI_OP_NULL;
    demand->commutative = 1;
    demand->strict = 0;
    demand->exact = 1;
    demand->data = NULL;
    demand->result = NULL;
    demand->pack.bytes = demand->unpack.bytes = 0;
}

int tutti_demand_of(uint32_t collective, const tutti_call *call, int rank, int size, tutti_type_cache *cache,
                    tutti_demand *demand)
{
    demand->refusal = TUTTI_ARGUMENTS;
    if (!is_valid(call, collective, rank, size))
        return TUTTI_NOT_COVERED;
    clear(demand);
    demand->collective = collective;
    demand->root = tutti_is_rooted(collective) ? call->root : 0;
    if (tutti_reduces(collective))
        return of_reduction(call, rank, size, cache, demand);
    if (collective != TUTTI_BARRIER)
        return of_movement(call, rank, size, cache, demand);
    demand->unit = byte_type();
    demand->lasting = 1;
    return 0;
}

/* Each rank may compute the result of an all_reduce itself, but programs rely on the same bits on all ranks. */
static int may_differ(const tutti_schedule_info *info, const tutti_demand *demand)
{
    uint32_t needed = TUTTI_SAME_ON_ALL | (demand->strict ? TUTTI_SAME_ORDER : 0u);
    return demand->collective == TUTTI_ALL_REDUCE && !demand->exact && (info->flags & needed) != needed;
}

enum tutti_reason tutti_refusal(const tutti_schedule_info *info, const tutti_demand *demand)
{
    if (!demand->commutative && (!(info->flags & TUTTI_RANK_ORDER) || demand->root != 0))
        return TUTTI_ORDER;
    if (may_differ(info, demand))
        return TUTTI_OTHER_BITS;
    if ((info->flags & TUTTI_MOVES_CHUNKS) && (demand->shards || demand->elements % info->chunks != 0))
        return TUTTI_UNEQUAL_CHUNKS;
    if ((demand->collective == TUTTI_GATHER || demand->collective == TUTTI_SCATTER) && demand->root != 0)
        return TUTTI_OTHER_ROOT;
    return TUTTI_NO_REASON;
}

const char *tutti_reason_text(enum tutti_reason reason)
{
    static const char *const texts[TUTTI_REASONS] = {
        [TUTTI_NO_REASON] = "none",
        [TUTTI_NO_RULE] = "no rule for this collective",
        [TUTTI_NO_RULE_RANKS] = "no rule for this collective on the communicator's number of ranks",
        [TUTTI_NO_RULE_SIZE] = "no rule for this size",
        [TUTTI_ORDER] = "the operation does not commute, and no schedule preserves rank order for this root",
        [TUTTI_OTHER_BITS] = "ranks would get different bits: the operation is not exact, and ranks reduce in different orders",
        [TUTTI_UNEQUAL_CHUNKS] = "the schedule moves chunks, and the payload does not divide into equal chunks",
        [TUTTI_OTHER_ROOT] = "the root is not rank 0",
        [TUTTI_ARGUMENTS] = "arguments that no schedule supports",
        [TUTTI_OPERATION] = "an operation that the MPI standard does not define on this datatype",
        [TUTTI_INTERCOMMUNICATOR] = "an intercommunicator",
        [TUTTI_NOT_AGREED] = "processes that have not agreed on the plan, because they were spawned or connected",
        [TUTTI_BEING_FREED] = "a communicator that is being freed",
        [TUTTI_NO_LOCAL_REDUCTION] = "a reduction in a session: MPI_Reduce_local of this MPI library needs MPI_Init",
        [TUTTI_NO_CHANNEL] = "no tags or memory left for schedules on the communicator",
        [TUTTI_NON_BLOCKING] = "a non-blocking collective",
        [TUTTI_PERSISTENT] = "a persistent collective",
        [TUTTI_ROOT_COUNTS] = "a count for each rank that only the root knows",
        [TUTTI_OWN_COUNTS] = "counts that differ from rank to rank, so ranks cannot select a schedule alike",
        [TUTTI_NEIGHBOURHOOD] = "a neighbourhood collective",
        [TUTTI_NO_SCHEDULE] = "no schedules for this collective",
    };
    return texts[reason];
}
