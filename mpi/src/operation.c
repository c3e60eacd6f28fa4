/* Properties of operations, and local reductions. */
#include "datatype.h"

#include "errhandler.h"

#include <limits.h>
#include <stddef.h>

int tutti_reduce_local(const void *from, void *to, int64_t count, const tutti_type *type, MPI_Op op)
{
    const char *source = from;
    char *target = to;
    int error = 0;
    while (!error && count > 0) {
        int piece = count > INT_MAX ? INT_MAX : (int)count;
        error = tutti_error_of(PMPI_Reduce_local(source, target, piece, type->handle, op));
        source += piece * type->extent;
        target += piece * type->extent;
        count -= piece;
    }
    return error;
}

/* Classes of predefined datatypes on which the standard defines operations (MPI 4.1, 6.9.2). Datatypes outside the list,
 * such as MPI_CHAR, have kind NONE. Fortran's 2-byte and 16-byte numbers are omitted: few MPI libraries reduce them. */
enum kind {
    NONE = 0,
    INTEGER = 1,
    FLOATING = 2,
    COMPLEX = 4,
    LOGICAL = 8,
    BYTE = 16,
    PAIR = 32, /* of a floating-point number and an index */
    FORTRAN = 64, /* Fortran integers */
    ADDRESS = 128, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
    INTEGERS = 256 /* a pair of integers: a value and an index */
};

static const struct {
    MPI_Datatype type;
    enum kind kind;
} kinds[] = {
    {MPI_DOUBLE, FLOATING},
    {MPI_FLOAT, FLOATING},
    {MPI_INT, INTEGER},
    {MPI_LONG, INTEGER},
    {MPI_LONG_LONG, INTEGER},
    {MPI_INT64_T, INTEGER},
    {MPI_UINT64_T, INTEGER},
    {MPI_INT32_T, INTEGER},
    {MPI_UINT32_T, INTEGER},
    {MPI_UNSIGNED, INTEGER},
    {MPI_UNSIGNED_LONG, INTEGER},
    {MPI_UNSIGNED_LONG_LONG, INTEGER},
    {MPI_INT16_T, INTEGER},
    {MPI_UINT16_T, INTEGER},
    {MPI_INT8_T, INTEGER},
    {MPI_UINT8_T, INTEGER},
    {MPI_SHORT, INTEGER},
    {MPI_UNSIGNED_SHORT, INTEGER},
    {MPI_SIGNED_CHAR, INTEGER},
    {MPI_UNSIGNED_CHAR, INTEGER},
    {MPI_AINT, ADDRESS},
    {MPI_OFFSET, ADDRESS},
    {MPI_COUNT, ADDRESS},
    {MPI_LONG_DOUBLE, FLOATING},
    {MPI_C_FLOAT_COMPLEX, COMPLEX},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX},
    {MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX},
    {MPI_C_BOOL, LOGICAL},
    {MPI_BYTE, BYTE},
    {MPI_FLOAT_INT, PAIR},
    {MPI_DOUBLE_INT, PAIR},
    {MPI_LONG_INT, INTEGERS},
    {MPI_2INT, INTEGERS},
    {MPI_SHORT_INT, INTEGERS},
    {MPI_LONG_DOUBLE_INT, PAIR},
    {MPI_INTEGER, FORTRAN},
    {MPI_INTEGER1, FORTRAN},
    {MPI_INTEGER2, FORTRAN},
    {MPI_INTEGER4, FORTRAN},
    {MPI_INTEGER8, FORTRAN},
    {MPI_REAL, FLOATING},
    {MPI_REAL4, FLOATING},
    {MPI_REAL8, FLOATING},
    {MPI_DOUBLE_PRECISION, FLOATING},
    {MPI_COMPLEX, COMPLEX},
    {MPI_COMPLEX8, COMPLEX},
    {MPI_COMPLEX16, COMPLEX},
    {MPI_DOUBLE_COMPLEX, COMPLEX},
    {MPI_LOGICAL, LOGICAL},
    {MPI_2REAL, PAIR},
    {MPI_2DOUBLE_PRECISION, PAIR},
    {MPI_2INTEGER, INTEGERS}};

static enum kind kind_of(MPI_Datatype type)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (type == kinds[i].type)
            return kinds[i].kind;
    return NONE;
}

/* The datatypes on which a predefined operation is defined, is bitwise commutative, and is exact. Exact: the result has the
 * same bits for every order and association. Floating-point maxima are not: for NaN and a number, or -0 and +0, the result
 * depends on the order. */
typedef struct {
    MPI_Op op;
    int on, exchangeable, exact;
} rule;

static const rule *rule_of(MPI_Op op, rule *storage)
{
    enum {
        ANY_INTEGER = INTEGER | FORTRAN | ADDRESS,
        ARITHMETIC = ANY_INTEGER | FLOATING,
        ALL = ARITHMETIC | COMPLEX,
        TRUTH = INTEGER | LOGICAL,
        BITS = ANY_INTEGER | BYTE
    };
    const rule rules[] = {
        {MPI_SUM, ALL, ALL, ANY_INTEGER},          {MPI_PROD, ALL, ARITHMETIC, ANY_INTEGER},
        {MPI_MAX, ARITHMETIC, ANY_INTEGER, ANY_INTEGER}, {MPI_MIN, ARITHMETIC, ANY_INTEGER, ANY_INTEGER},
        {MPI_LAND, TRUTH, TRUTH, TRUTH},     {MPI_LOR, TRUTH, TRUTH, TRUTH},
        {MPI_LXOR, TRUTH, TRUTH, TRUTH},     {MPI_BAND, BITS, BITS, BITS},
        {MPI_BOR, BITS, BITS, BITS},         {MPI_BXOR, BITS, BITS, BITS},
        {MPI_MAXLOC, PAIR | INTEGERS, 0, INTEGERS}, {MPI_MINLOC, PAIR | INTEGERS, 0, INTEGERS}};
    for (unsigned i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (op == rules[i].op) {
            *storage = rules[i];
            return storage;
        }
    }
    return NULL;
}

int tutti_operation_describe(MPI_Op handle, tutti_operation *operation)
{
    if (operation->named && operation->handle == handle)
        return 0;
    rule storage;
    operation->handle = handle;
    operation->named = rule_of(handle, &storage) != NULL;
    operation->commutative = 1;
    return operation->named ? 0 : tutti_error_of(PMPI_Op_commutative(handle, &operation->commutative));
}

int tutti_operation_exchangeable(const tutti_operation *operation, const tutti_type *type)
{
    rule storage;
    const rule *of = rule_of(operation->handle, &storage);
    return of && (of->exchangeable & (int)kind_of(type->handle));
}

int tutti_operation_exact(const tutti_operation *operation, const tutti_type *type)
{
    rule storage;
    const rule *of = operation->named ? rule_of(operation->handle, &storage) : NULL;
    return of && (of->exact & (int)kind_of(type->handle));
}

int tutti_operation_fits(const tutti_operation *operation, const tutti_type *type)
{
    rule storage;
    const rule *of = rule_of(operation->handle, &storage);
    if (!of)
        return 1;
    /* A Fortran datatype that the MPI library was built without has size 0. */
    return type->named && type->size > 0 && (of->on & (int)kind_of(type->handle));
}
