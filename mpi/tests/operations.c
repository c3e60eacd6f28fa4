/* The predefined operations and two user-defined ones, each compared with the checker's arithmetic on packed elements. */
#include "check.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define PRIME 65521u

const char *const operation_names[OPERATIONS] = {"max", "min", "sum",  "prod",   "land",   "band",  "lor",
                                                 "bor", "lxor", "bxor", "minloc", "maxloc", "added", "composed"};

static MPI_Op user_operations[2];
static atomic_int unknown_types, misaligned;
_Thread_local bool aligned_operands;

int unknown_types_seen(void) { return atomic_load(&unknown_types); }
int misaligned_operands_seen(void) { return atomic_load(&misaligned); }

/* Checks that elements are as aligned as in the caller's buffers, where element 0 is aligned to 16 bytes. Reads the last byte
 * of an element, as a C struct assignment may. */
static void examine_operand(const struct element *element, const unsigned char *operand, int count) {
    uintptr_t alignment = (uintptr_t)(element->extent & -element->extent);
    if (alignment > 16) alignment = 16;
    if ((uintptr_t)operand % alignment != 0) atomic_fetch_add(&misaligned, 1);
    if (count > 0) (void)*(const volatile unsigned char *)(operand + (count - 1) * element->extent + element->end - 1);
}

/* --- user-defined ------------------------------------------------------------------------------------------------ */

static void fold_words(enum operation operation, int words, uint32_t *left, const uint32_t *right) {
    uint64_t a[MOST_BLOCKS], b[MOST_BLOCKS];
    for (int i = 0; i < words; i++) {
        a[i] = left[i];
        b[i] = right[i];
    }
    if (operation == ADDED) {
        for (int i = 0; i < words; i++) left[i] += right[i];
    } else if (words == 4) { /* matrices of two rows */
        for (int i = 0; i < 4; i++) left[i] = (uint32_t)((a[i & 2] * b[i & 1] + a[(i & 2) + 1] * b[(i & 1) + 2]) % PRIME);
    } else { /* x -> a0 x + a1 after x -> b0 x + b1 */
        left[0] = (uint32_t)(a[0] * b[0] % PRIME);
        left[1] = (uint32_t)((a[0] * b[1] + a[1]) % PRIME);
    }
}

static void user_fold(enum operation operation, unsigned char *in, unsigned char *inout, int count, MPI_Datatype type) {
    const struct element *element = element_of(type);
    if (element == NULL || element->kind != WORDS) {
        atomic_fetch_add(&unknown_types, 1);
        return;
    }
    if (aligned_operands) {
        examine_operand(element, in, count);
        examine_operand(element, inout, count);
    }
    for (int i = 0; i < count; i++) {
        uint32_t left[MOST_BLOCKS], right[MOST_BLOCKS];
        packed(element, in + i * element->extent, 1, (unsigned char *)left);
        packed(element, inout + i * element->extent, 1, (unsigned char *)right);
        fold_words(operation, element->blocks, left, right);
        unpacked(element, (unsigned char *)left, 1, inout + i * element->extent);
    }
}

static void user_added(void *in, void *inout, int *count, MPI_Datatype *type) {
    user_fold(ADDED, in, inout, *count, *type);
}

static void user_composed(void *in, void *inout, int *count, MPI_Datatype *type) {
    user_fold(COMPOSED, in, inout, *count, *type);
}

void make_operations(void) {
    MPI_Op_create(user_added, 1, &user_operations[0]);
    MPI_Op_create(user_composed, 0, &user_operations[1]);
}

void free_operations(void) {
    MPI_Op_free(&user_operations[0]);
    MPI_Op_free(&user_operations[1]);
}

MPI_Op operation_of(enum operation operation) {
    const MPI_Op predefined[] = {MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                                 MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    return operation >= ADDED ? user_operations[operation - ADDED] : predefined[operation];
}

/* MPI 4.1, section 6.9.2: logical operations are defined on C integers and booleans, but not on MPI_AINT, MPI_OFFSET and
 * MPI_COUNT; bitwise ones on integers and bytes. */
bool operation_fits(enum operation operation, const struct element *element) {
    bool address = element->kind == ADDRESS;
    bool integer = element->kind == SIGNED || element->kind == UNSIGNED || address;
    switch (operation) {
    case MAXIMUM: case MINIMUM: return integer || element->kind == FLOATING;
    case SUM: case PRODUCT: return integer || element->kind == FLOATING || element->kind == COMPLEX;
    case LAND: case LOR: case LXOR: return (integer && !address) || element->kind == BOOLEAN;
    case BAND: case BOR: case BXOR: return integer || element->kind == BYTES;
    case MINLOC: case MAXLOC: return element->kind == PAIR;
    default: return element->kind == WORDS;
    }
}

bool operation_rounds(enum operation operation, const struct element *element) {
    return (element->kind == FLOATING || element->kind == COMPLEX) && (operation == SUM || operation == PRODUCT);
}

void combined(enum operation operation, const struct element *element, void *left, void *right, int64_t count) {
    int length = (int)count;
    MPI_Datatype type = element->type;
    if (operation == ADDED)
        user_added(left, right, &length, &type);
    else if (operation == COMPOSED)
        user_composed(left, right, &length, &type);
    else
        MPI_Reduce_local(left, right, length, type, operation_of(operation));
}

/* --- the checker's arithmetic --------------------------------------------------------------------------------------- */

static uint64_t integer_fold(enum operation operation, bool is_signed, uint64_t a, uint64_t b) {
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (operation) {
    case MAXIMUM: return less ? b : a;
    case MINIMUM: return less ? a : b;
    case SUM: return a + b;
    case PRODUCT: return a * b;
    case LAND: return a != 0 && b != 0;
    case LOR: return a != 0 || b != 0;
    case LXOR: return (a != 0) != (b != 0);
    case BAND: return a & b;
    case BOR: return a | b;
    default: return a ^ b;
    }
}

static uint64_t loaded(const unsigned char *bytes, size_t size, bool is_signed) {
    uint64_t value = 0;
    memcpy(&value, bytes, size); /* little-endian, as plans are */
    if (is_signed && size < 8 && value >> (8 * size - 1)) value |= ~(uint64_t)0 << (8 * size);
    return value;
}

#define FOLD_FLOATING(type)                                              \
    do {                                                                 \
        type a, b;                                                       \
        memcpy(&a, left, sizeof a);                                      \
        memcpy(&b, right, sizeof b);                                     \
        a = operation == SUM       ? a + b                               \
            : operation == PRODUCT ? a * b                               \
            : (a < b) == (operation == MAXIMUM) ? b : a;                 \
        memcpy(left, &a, sizeof a);                                      \
    } while (0)
#define FOLD_COMPLEX(type)                                               \
    do {                                                                 \
        type complex a, b;                                               \
        memcpy(&a, left, sizeof a);                                      \
        memcpy(&b, right, sizeof b);                                     \
        a = operation == SUM ? a + b : a * b;                            \
        memcpy(left, &a, sizeof a);                                      \
    } while (0)

static void fold_floating(enum operation operation, const struct element *element, unsigned char *left,
                          const unsigned char *right) {
    bool is_complex = element->kind == COMPLEX;
    size_t number = is_complex ? element->size / 2 : element->size;
    if (number == sizeof(float) && is_complex) FOLD_COMPLEX(float);
    else if (number == sizeof(float)) FOLD_FLOATING(float);
    else if (number == sizeof(double) && is_complex) FOLD_COMPLEX(double);
    else if (number == sizeof(double)) FOLD_FLOATING(double);
    else if (is_complex) FOLD_COMPLEX(long double);
    else FOLD_FLOATING(long double);
}

static long double pair_value(const struct element *element, const unsigned char *pair) {
    float single;
    double twice;
    long double extended;
    size_t bytes = element->block[0].bytes;
    if (element->type == MPI_FLOAT_INT) return memcpy(&single, pair, bytes), (long double)single;
    if (element->type == MPI_DOUBLE_INT) return memcpy(&twice, pair, bytes), (long double)twice;
    if (element->type == MPI_LONG_DOUBLE_INT) return memcpy(&extended, pair, bytes), extended;
    return (long double)(int64_t)loaded(pair, bytes, true);
}

static void fold_pairs(enum operation operation, const struct element *element, unsigned char *left,
                       const unsigned char *right) {
    long double a = pair_value(element, left), b = pair_value(element, right);
    int64_t first = (int64_t)loaded(left + element->block[0].bytes, sizeof(int), true);
    int64_t second = (int64_t)loaded(right + element->block[0].bytes, sizeof(int), true);
    bool better = operation == MAXLOC ? b > a : b < a;
    if (better || (a == b && second < first)) memcpy(left, right, element->size);
}

void folded(enum operation operation, const struct element *element, unsigned char *left, const unsigned char *right) {
    if (element->kind == WORDS) {
        fold_words(operation, element->blocks, (uint32_t *)left, (const uint32_t *)right);
    } else if (element->kind == PAIR) {
        fold_pairs(operation, element, left, right);
    } else if (element->kind == FLOATING || element->kind == COMPLEX) {
        fold_floating(operation, element, left, right);
    } else {
        bool is_signed = element->kind == SIGNED || element->kind == ADDRESS;
        uint64_t value = integer_fold(operation, is_signed, loaded(left, element->size, is_signed),
                                      loaded(right, element->size, is_signed));
        memcpy(left, &value, element->size);
    }
}

/* --- the effect of reordering --------------------------------------------------------------------------------------- */

static void numbers_of(const struct element *element, const unsigned char *value, long double numbers[2]) {
    int count = element->kind == COMPLEX ? 2 : 1;
    size_t bytes = element->size / (size_t)count;
    numbers[1] = 0;
    for (int i = 0; i < count; i++) {
        float single;
        double twice;
        const unsigned char *at = value + (size_t)i * bytes;
        if (bytes == sizeof single) numbers[i] = (memcpy(&single, at, bytes), (long double)single);
        else if (bytes == sizeof twice) numbers[i] = (memcpy(&twice, at, bytes), (long double)twice);
        else memcpy(&numbers[i], at, bytes);
    }
}

long double magnitude_of(const struct element *element, const unsigned char *value) {
    long double numbers[2];
    numbers_of(element, value, numbers);
    return fabsl(numbers[0]) + fabsl(numbers[1]);
}

/* Each of ranks - 1 roundings contributes an error of at most half an epsilon, in either order. A complex product rounds four
 * products and two sums. */
bool within_reordering(enum operation operation, const struct element *element, const unsigned char *got,
                       const unsigned char *expected, long double magnitude, int ranks) {
    long double a[2], b[2];
    numbers_of(element, got, a);
    numbers_of(element, expected, b);
    size_t bytes = element->kind == COMPLEX ? element->size / 2 : element->size;
    long double epsilon = bytes == sizeof(float) ? FLT_EPSILON : bytes == sizeof(double) ? DBL_EPSILON : LDBL_EPSILON;
    long double bound = (long double)ranks * epsilon * magnitude;
    if (element->kind == COMPLEX && operation == PRODUCT) bound *= 4;
    return fabsl(a[0] - b[0]) <= bound && fabsl(a[1] - b[1]) <= bound;
}
