/* Contributions of the ranks: hashed from the case's seed, so that every rank can compute the data of every other. */
#include "check.h"

#include <string.h>

#define PRIME 65521u

static void store_number(size_t bytes, long double number, unsigned char *value) {
    float single = (float)number;
    double twice = (double)number;
    if (bytes == sizeof single) memcpy(value, &single, bytes);
    else if (bytes == sizeof twice) memcpy(value, &twice, bytes);
    else memcpy(value, &number, bytes);
}

/* Exact: sums of integers, products of powers of two. Otherwise numbers that round at every step. */
static long double floating(enum operation operation, bool exact, uint64_t hash) {
    static const long double powers[] = {1, -1, 2, 0.5L, -2, -0.5L, 1, -1};
    long double fraction = (long double)(hash >> 11) / (long double)((uint64_t)1 << 53);
    if (operation == PRODUCT) return exact ? powers[hash & 7] : 0.5L + fraction;
    if (exact && operation == SUM) return (long double)((int)(hash % 2001) - 1000);
    return (2 * fraction - 1) * (long double)(1 << (hash & 7));
}

/* Sums do not overflow, because Open MPI's vector units saturate unsigned ones of 8 and 16 bits. Products rarely do. */
static uint64_t integer(enum operation operation, bool is_signed, size_t bytes, uint64_t hash) {
    uint64_t most = (uint64_t)1 << (bytes == 1 ? 1 : 8 * bytes - 7); /* 64 of them fit */
    switch (operation) {
    case LAND: return hash & 7 ? hash | 1 : 0;
    case LOR: case LXOR: return hash & 7 ? 0 : hash | 1;
    case SUM: return is_signed ? hash % most - most / 2 : hash % most;
    case PRODUCT:
        if (is_signed && hash & 1) return (uint64_t)-1;
        return hash & 62 ? 1 : 2;
    default: return hash;
    }
}

static void pair(const struct element *element, uint64_t hash, unsigned char *value) {
    int64_t number = (int64_t)(hash % 5) - 2; /* frequent ties */
    size_t bytes = element->block[0].bytes;
    int index = (int)(hash >> 40);
    memset(value, 0, element->size);
    if (element->type == MPI_FLOAT_INT || element->type == MPI_DOUBLE_INT || element->type == MPI_LONG_DOUBLE_INT)
        store_number(bytes, (long double)number, value);
    else
        memcpy(value, &number, bytes);
    memcpy(value + bytes, &index, sizeof index);
}

static void generate(const struct element *element, enum operation operation, bool exact, uint64_t hash,
                     unsigned char *value) {
    uint64_t bits;
    size_t half = element->size / 2;
    switch (element->kind) {
    case FLOATING: store_number(element->size, floating(operation, exact, hash), value); break;
    case COMPLEX:
        store_number(half, floating(operation, exact, hash), value);
        store_number(half, exact && operation == PRODUCT ? 0 : floating(operation, exact, mixed(hash)), value + half);
        break;
    case PAIR: pair(element, hash, value); break;
    case BOOLEAN: *value = integer(operation, false, 1, hash) & 1; break;
    case WORDS:
        for (size_t i = 0; i < element->size; i += 4) {
            hash = mixed(hash);
            uint32_t word = (uint32_t)(operation == COMPOSED ? hash % PRIME : hash);
            memcpy(value + i, &word, 4);
        }
        break;
    case ADDRESS: /* not negative: Open MPI compares MPI_OFFSET as unsigned */
        bits = integer(operation, false, element->size, hash) >> (operation == SUM || operation == PRODUCT ? 0 : 1);
        memcpy(value, &bits, element->size);
        break;
    default:
        bits = integer(operation, element->kind == SIGNED, element->size, hash);
        memcpy(value, &bits, element->size);
    }
}

void generated(const struct element *element, enum operation operation, bool exact, uint64_t seed, int64_t first,
               int64_t count, unsigned char *values) {
    for (int64_t i = 0; i < count; i++)
        generate(element, operation, exact, mixed(seed ^ (uint64_t)(first + i) * 0x2545f4914f6cdd1du),
                 values + (size_t)i * element->size);
    cleaned(element, values, count);
}
