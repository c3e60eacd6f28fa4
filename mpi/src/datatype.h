/* What matters of datatypes and operations. */
#ifndef TUTTI_DATATYPE_H
#define TUTTI_DATATYPE_H

#include "channel.h"
#include <stdint.h>

typedef struct {
    MPI_Datatype handle;
    int64_t size, extent, true_lb, true_extent; /* bytes */
    int64_t lowest, span; /* from an element's address: where what may be touched of it begins, and how long that is */
    int named;            /* predefined: never freed, so this may be kept */
    int dense;            /* no gaps, and elements follow one another without any */
} tutti_type;

/* Asks the MPI, unless `type` holds the answer already; returns an MPI error code. */
int tutti_type_describe(MPI_Datatype handle, tutti_type *type);

/* Whether its bytes lie in memory one after the other in the order in which it lists them: where not known, no. */
int tutti_type_in_order(MPI_Datatype handle);

/* A committed datatype of `count` elements of another. */
int tutti_type_large(int64_t count, MPI_Datatype type, MPI_Datatype *whole);

/* Copies elements and nothing between them, by a message of this rank to itself. */
int tutti_type_copy(const void *from, void *to, int64_t count, const tutti_type *type, const tutti_channel *channel);

/* Elements to the bytes that they are made of, and back. */
int tutti_type_pack(const void *from, int64_t count, MPI_Datatype type, void *bytes, int64_t size, const tutti_channel *channel);
int tutti_type_unpack(const void *bytes, int64_t size, void *to, int64_t count, MPI_Datatype type, const tutti_channel *channel);

/* to = from op to, element by element, any number of them. */
int tutti_reduce_local(const void *from, void *to, int64_t count, const tutti_type *type, MPI_Op op);

typedef struct {
    MPI_Op handle;
    int named, commutative;
} tutti_operation;

/* Asks the MPI, unless `operation` holds the answer already. */
int tutti_operation_describe(MPI_Op handle, tutti_operation *operation);

/* Whether exchanging its operands leaves every bit of the result as it is: no where -0 and +0 are equal but differ. */
int tutti_operation_exchangeable(const tutti_operation *operation, const tutti_type *type);

/* Whether every order of operands, and every bracketing, gives the same bits: of no user-defined operation. */
int tutti_operation_exact(const tutti_operation *operation, const tutti_type *type);

/* Whether the standard defines a predefined operation on this datatype: of others the MPI underneath shall speak, since its
 * error in a reduction of ours would go to the world's handler. */
int tutti_operation_fits(const tutti_operation *operation, const tutti_type *type);

#endif
