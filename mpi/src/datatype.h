/* Properties of datatypes and operations that schedules depend on. */
#ifndef TUTTI_DATATYPE_H
#define TUTTI_DATATYPE_H

#include "channel.h"
#include <stdint.h>

typedef struct {
    MPI_Datatype handle;
    int64_t size, extent, true_lb, true_extent; /* bytes */
    int64_t lowest, span; /* offset and length of the memory that an element may touch, relative to its address */
    int named;            /* predefined: never freed, so the properties can be cached */
    int dense;            /* no gaps within or between elements */
} tutti_type;

/* Queries the MPI library, unless `type` already describes the handle. Returns an MPI error code. */
int tutti_type_describe(MPI_Datatype handle, tutti_type *type);

/* Whether its type map lists the bytes in the order of their addresses. Returns 0 if that is unknown. */
int tutti_type_in_order(MPI_Datatype handle);

/* Creates a committed datatype of `count` elements of another. */
int tutti_type_large(int64_t count, MPI_Datatype type, MPI_Datatype *large);

/* Copies elements without touching the gaps, by a message of this rank to itself. */
int tutti_type_copy(const void *from, void *to, int64_t count, const tutti_type *type, const tutti_channel *channel);

/* Elements that do not lie in place as the payload's bytes, and so have to be packed or unpacked. */
typedef struct {
    void *buffer;
    int64_t count;
    MPI_Datatype type;
    int64_t bytes; /* 0: in place */
    const int64_t *counts, *displacements; /* in elements, of blocks that are not in order; or NULL */
    int blocks;
} tutti_packing;

/* Packs elements into bytes, block after block, and unpacks them. */
int tutti_type_pack(const tutti_packing *packing, void *bytes, const tutti_channel *channel);
int tutti_type_unpack(const tutti_packing *packing, const void *bytes, const tutti_channel *channel);

/* to = from op to, element by element, for any count. */
int tutti_reduce_local(const void *from, void *to, int64_t count, const tutti_type *type, MPI_Op op);

typedef struct {
    MPI_Op handle;
    int named, commutative;
} tutti_operation;

/* Queries the MPI library, unless `operation` already describes the handle. */
int tutti_operation_describe(MPI_Op handle, tutti_operation *operation);

/* Whether exchanging the operands preserves every bit of the result. False if -0 and +0 compare equal but differ. */
int tutti_operation_exchangeable(const tutti_operation *operation, const tutti_type *type);

/* Whether every order and association of operands gives the same bits. False for user-defined operations. */
int tutti_operation_exact(const tutti_operation *operation, const tutti_type *type);

/* Whether the standard defines a predefined operation on this datatype. Other calls are left to the MPI library, because
 * an error in a local reduction would go to the error handler of MPI_COMM_WORLD. */
int tutti_operation_fits(const tutti_operation *operation, const tutti_type *type);

#endif
