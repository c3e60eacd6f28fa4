/* Properties of datatypes, and copies between datatypes. */
#include "datatype.h"

#include "errhandler.h"
#include "exchange.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Datatypes of MPI_Type_create_f90_real and related functions are unnamed but predefined: they must not be freed. */
static int is_predefined(MPI_Datatype handle, int *predefined)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;
    int error = tutti_error_of(PMPI_Type_get_envelope(handle, &integers, &addresses, &types, &combiner));
    *predefined = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
                  combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
    return error;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int tutti_type_describe(MPI_Datatype handle, tutti_type *type)
{
    if (type->named && type->handle == handle)
        return 0;
    MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    int error = is_predefined(handle, &type->named);
    if (!error)
        error = PMPI_Type_size_x(handle, &size);
    if (!error)
        error = PMPI_Type_get_extent_x(handle, &lb, &extent);
    if (!error)
        error = PMPI_Type_get_true_extent_x(handle, &true_lb, &true_extent);
    type->named = !error && type->named;
    type->handle = handle;
    type->size = size;
    type->extent = extent;
    type->true_lb = true_lb;
    type->true_extent = true_extent;
    /* A user-defined function may read the padding at the end of a struct, as a C assignment does. */
    type->lowest = least(lb, true_lb);
    type->span = -least(-(lb + extent), -(true_lb + true_extent)) - type->lowest;
    type->dense = size == extent && size == true_extent;
    return error;
}

static int in_order_inside(MPI_Datatype handle, int combiner, int integers, int addresses);

int tutti_type_in_order(MPI_Datatype handle)
{
    tutti_type type = {.named = 0};
    int integers, addresses, types, combiner;
    if (tutti_type_describe(handle, &type) || !type.dense || type.true_lb != 0)
        return 0;
    if (type.named)
        return 1;
    if (PMPI_Type_get_envelope(handle, &integers, &addresses, &types, &combiner) || types != 1)
        return 0;
    return in_order_inside(handle, combiner, integers, addresses);
}

/* A dense datatype that repeats another one is in order if that one is. */
static int in_order_inside(MPI_Datatype handle, int combiner, int integers, int addresses)
{
    int counts[3];
    MPI_Aint displacements[2];
    MPI_Datatype inner;
    if ((combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_RESIZED) ||
        integers > 3 || addresses > 2)
        return 0;
    if (PMPI_Type_get_contents(handle, integers, addresses, 1, counts, displacements, &inner))
        return 0;
    int in_order = tutti_type_in_order(inner), predefined = 1;
    if (!is_predefined(inner, &predefined) && !predefined)
        PMPI_Type_free(&inner);
    return in_order;
}

int tutti_type_large(int64_t count, MPI_Datatype type, MPI_Datatype *large)
{
    enum { PIECE = 1 << 30 };
    tutti_type each = {.named = 0};
    int error = tutti_type_describe(type, &each);
    int64_t pieces = count / PIECE, rest = count % PIECE;
    if (!error && pieces > INT_MAX)
        error = MPI_ERR_COUNT;
    MPI_Datatype piece, parts[2];
    if (!error)
        error = PMPI_Type_contiguous(PIECE, type, &piece);
    if (error)
        return error;
    int lengths[2] = {(int)pieces, (int)rest};
    MPI_Aint at[2] = {0, (MPI_Aint)(pieces * PIECE * each.extent)};
    parts[0] = piece;
    parts[1] = type;
    error = PMPI_Type_create_struct(rest ? 2 : 1, lengths, at, parts, large);
    PMPI_Type_free(&piece);
    return error ? error : PMPI_Type_commit(large);
}

/* One message of this rank to itself; neither count exceeds 2^31 - 1. */
static int to_self(const void *from, int sent, MPI_Datatype as, void *to, int taken, MPI_Datatype type,
                   const tutti_channel *channel)
{
    int rank = channel->rank, tag = channel->tag + TUTTI_TAG_SELF;
    return PMPI_Sendrecv(from, sent, as, rank, tag, to, taken, type, rank, tag, channel->comm, MPI_STATUS_IGNORE);
}

int tutti_type_copy(const void *from, void *to, int64_t count, const tutti_type *type, const tutti_channel *channel)
{
    int error = 0;
    const char *source = from;
    char *target = to;
    while (!error && count > 0) {
        int piece = count > INT_MAX ? INT_MAX : (int)count;
        error = to_self(source, piece, type->handle, target, piece, type->handle, channel);
        source += piece * type->extent;
        target += piece * type->extent;
        count -= piece;
    }
    return error;
}

/* Describes elements by a count of their datatype, or by one large datatype if there are more than INT_MAX. */
static int element_type(int64_t elements, MPI_Datatype handle, int *count, MPI_Datatype *type)
{
    *count = elements > INT_MAX ? 1 : (int)elements;
    *type = handle;
    return elements > INT_MAX ? tutti_type_large(elements, handle, type) : 0;
}

static void free_large(int64_t count, MPI_Datatype *type)
{
    if (count > INT_MAX)
        PMPI_Type_free(type);
}

/* Sends elements to this rank itself, which receives them as elements of another datatype. */
static int convert(const void *from, int64_t count, MPI_Datatype handle, void *to, int64_t to_count, MPI_Datatype to_handle,
                   const tutti_channel *channel)
{
    int sent, taken;
    MPI_Datatype as, type;
    int error = element_type(count, handle, &sent, &as);
    if (error)
        return error;
    error = element_type(to_count, to_handle, &taken, &type);
    if (!error) {
        error = to_self(from, sent, as, to, taken, type, channel);
        free_large(to_count, &type);
    }
    free_large(count, &as);
    return error;
}

/* MPICH 5.0.2 rejects packed bytes for MPI_LONG_INT and other datatypes with gaps in messages beyond the eager limit.
 * Elements with gaps are therefore unpacked in pieces. */
static int unpack(const char *source, int64_t size, char *target, int64_t count, const tutti_type *each,
                  const tutti_channel *channel)
{
    enum { AT_ONCE = 8192 };
    int error = 0;
    int64_t piece = each->dense || each->size > AT_ONCE || each->size == 0 ? count : AT_ONCE / each->size;
    if (each->size * count != size) /* fewer bytes than elements: cannot be split */
        piece = count;
    while (!error && count > 0) {
        int64_t now = count < piece ? count : piece, taken = now == count ? size : now * each->size;
        error = convert(source, taken, MPI_PACKED, target, now, each->handle, channel);
        source += taken;
        target += now * each->extent;
        size -= taken;
        count -= now;
    }
    return error;
}

int tutti_type_pack(const tutti_packing *packing, void *bytes, const tutti_channel *channel)
{
    if (!packing->counts)
        return convert(packing->buffer, packing->count, packing->type, bytes, packing->bytes, MPI_PACKED, channel);
    tutti_type each = {.named = 0};
    int error = tutti_type_describe(packing->type, &each);
    char *target = bytes;
    for (int i = 0; !error && i < packing->blocks; i++) {
        const char *source = (char *)packing->buffer + packing->displacements[i] * each.extent;
        int64_t size = packing->counts[i] * each.size;
        if (size > 0)
            error = convert(source, packing->counts[i], packing->type, target, size, MPI_PACKED, channel);
        target += size;
    }
    return error;
}

int tutti_type_unpack(const tutti_packing *packing, const void *bytes, const tutti_channel *channel)
{
    tutti_type each = {.named = 0};
    int error = tutti_type_describe(packing->type, &each);
    const char *source = bytes;
    if (!packing->counts)
        return error ? error : unpack(source, packing->bytes, packing->buffer, packing->count, &each, channel);
    int in_order = tutti_type_in_order(packing->type);
    for (int i = 0; !error && i < packing->blocks; i++) {
        char *target = (char *)packing->buffer + packing->displacements[i] * each.extent;
        int64_t size = packing->counts[i] * each.size;
        if (size > 0 && in_order)
            memcpy(target, source, (size_t)size);
        else if (size > 0)
            error = unpack(source, size, target, packing->counts[i], &each, channel);
        source += size;
    }
    return error;
}
