/* The datatypes under test, predefined and derived, with their layouts, which are known without querying MPI. */
#include "check.h"

#include <complex.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define ENDLESS ((int64_t)1 << 40)

struct element *elements;
int element_count;

uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t drawn(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    return mixed(*state);
}

int64_t drawn_below(uint64_t *state, int64_t end) { return (int64_t)(drawn(state) % (uint64_t)end); }

static struct element *added(const char *name, enum kind kind, MPI_Datatype type, ptrdiff_t extent) {
    elements = realloc(elements, sizeof(struct element) * (size_t)(element_count + 1));
    struct element *element = &elements[element_count++];
    *element = (struct element){.name = name, .kind = kind, .type = type, .extent = extent, .most = ENDLESS};
    return element;
}

static void with_block(struct element *element, ptrdiff_t offset, size_t bytes) {
    element->block[element->blocks++] = (struct block){offset, bytes};
    element->size += bytes;
    element->significant = element->size;
}

static void add_plain(const char *name, enum kind kind, MPI_Datatype type, size_t bytes) {
    if (type != MPI_DATATYPE_NULL) with_block(added(name, kind, type, (ptrdiff_t)bytes), 0, bytes);
}

#define PLAIN(kind, type, c) add_plain(#type, kind, type, sizeof(c))

static void add_integers(void) {
    PLAIN(SIGNED, MPI_SIGNED_CHAR, signed char);
    PLAIN(SIGNED, MPI_SHORT, short);
    PLAIN(SIGNED, MPI_INT, int);
    PLAIN(SIGNED, MPI_LONG, long);
    PLAIN(SIGNED, MPI_LONG_LONG, long long);
    PLAIN(SIGNED, MPI_INT8_T, int8_t);
    PLAIN(SIGNED, MPI_INT16_T, int16_t);
    PLAIN(SIGNED, MPI_INT32_T, int32_t);
    PLAIN(SIGNED, MPI_INT64_T, int64_t);
    PLAIN(UNSIGNED, MPI_UNSIGNED_CHAR, unsigned char);
    PLAIN(UNSIGNED, MPI_UNSIGNED_SHORT, unsigned short);
    PLAIN(UNSIGNED, MPI_UNSIGNED, unsigned);
    PLAIN(UNSIGNED, MPI_UNSIGNED_LONG, unsigned long);
    PLAIN(UNSIGNED, MPI_UNSIGNED_LONG_LONG, unsigned long long);
    PLAIN(UNSIGNED, MPI_UINT8_T, uint8_t);
    PLAIN(UNSIGNED, MPI_UINT16_T, uint16_t);
    PLAIN(UNSIGNED, MPI_UINT32_T, uint32_t);
    PLAIN(UNSIGNED, MPI_UINT64_T, uint64_t);
    PLAIN(ADDRESS, MPI_AINT, MPI_Aint);
    PLAIN(ADDRESS, MPI_OFFSET, MPI_Offset);
    PLAIN(ADDRESS, MPI_COUNT, MPI_Count);
}

static void add_numbers(void) {
    PLAIN(FLOATING, MPI_FLOAT, float);
    PLAIN(FLOATING, MPI_DOUBLE, double);
    PLAIN(FLOATING, MPI_LONG_DOUBLE, long double);
    PLAIN(COMPLEX, MPI_C_FLOAT_COMPLEX, float complex);
    PLAIN(COMPLEX, MPI_C_DOUBLE_COMPLEX, double complex);
    PLAIN(COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, long double complex);
    PLAIN(BOOLEAN, MPI_C_BOOL, bool);
    PLAIN(BYTES, MPI_BYTE, char);
    PLAIN(TEXT, MPI_CHAR, char);
    PLAIN(TEXT, MPI_WCHAR, wchar_t);
    for (int i = 0; i < element_count; i++)
        if (elements[i].type == MPI_LONG_DOUBLE || elements[i].type == MPI_C_LONG_DOUBLE_COMPLEX)
            elements[i].significant = LDBL_MANT_DIG == 64 ? 10 : 16;
}

#define PAIR_OF(type, first)                                                        \
    do {                                                                            \
        struct { first value; int index; } pair;                                    \
        struct element *element = added(#type, PAIR, type, (ptrdiff_t)sizeof pair); \
        with_block(element, 0, sizeof pair.value);                                  \
        with_block(element, (char *)&pair.index - (char *)&pair, sizeof(int));      \
        element->significant = sizeof pair.value;                                   \
    } while (0)

static void add_pairs(void) {
    PAIR_OF(MPI_FLOAT_INT, float);
    PAIR_OF(MPI_DOUBLE_INT, double);
    PAIR_OF(MPI_LONG_INT, long);
    PAIR_OF(MPI_2INT, int);
    PAIR_OF(MPI_SHORT_INT, short);
    PAIR_OF(MPI_LONG_DOUBLE_INT, long double);
    elements[element_count - 1].significant = LDBL_MANT_DIG == 64 ? 10 : 16;
}

/* `words` blocks of four bytes at `offsets`, elements `extent` apart, the lower bound at `lower`. */
static void add_words(const char *name, int words, const ptrdiff_t *offsets, ptrdiff_t lower, ptrdiff_t extent) {
    int lengths[MOST_BLOCKS] = {0};
    MPI_Aint at[MOST_BLOCKS] = {0};
    for (int i = 0; i < words; i++) {
        lengths[i] = 1;
        at[i] = offsets[i];
    }
    MPI_Datatype bare, type;
    MPI_Type_create_hindexed(words, lengths, at, MPI_UINT32_T, &bare);
    MPI_Type_create_resized(bare, lower, extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    struct element *element = added(name, WORDS, type, extent);
    for (int i = 0; i < words; i++) with_block(element, offsets[i], 4);
    element->committed = true;
    element->end = lower + extent;
    element->strange = lower != 0 || offsets[0] != 0 || extent < offsets[words - 1];
}

#define COLUMN 64 /* columns of a matrix with this many columns: elements are interleaved */

static void add_derived(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(4, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    struct element *contiguous = added("contiguous", WORDS, type, 16);
    for (int i = 0; i < 4; i++) with_block(contiguous, 4 * i, 4);
    contiguous->committed = true;
    contiguous->end = 16;
    MPI_Type_vector(2, 2, 3, MPI_UINT32_T, &type); /* no gap at its end: extent 20 */
    MPI_Type_commit(&type);
    struct element *vector = added("vector", WORDS, type, 20);
    for (int i = 0; i < 4; i++) with_block(vector, 4 * i + (i > 1 ? 4 : 0), 4);
    vector->committed = true;
    vector->end = 20;
    add_words("gaps", 4, (ptrdiff_t[]){4, 12, 20, 32}, 0, 40);
    add_words("negative lower bound", 4, (ptrdiff_t[]){-16, -8, 0, 4}, -24, 36);
    add_words("descending", 4, (ptrdiff_t[]){24, 16, 4, 0}, 0, 28);
    add_words("columns", 4, (ptrdiff_t[]){0, 4 * COLUMN, 8 * COLUMN, 12 * COLUMN}, 0, 4);
    elements[element_count - 1].most = COLUMN;
    add_words("far back", 4, (ptrdiff_t[]){-48, -28, -8, -4}, -48, 16); /* elements overlap the extent of previous ones */
    add_words("two words", 2, (ptrdiff_t[]){0, 4}, 0, 8);
    add_words("two apart", 2, (ptrdiff_t[]){8, 0}, -4, 20);
}

void make_elements(void) {
    add_integers();
    add_numbers();
    add_pairs();
    add_derived();
}

void free_elements(void) {
    for (int i = 0; i < element_count; i++)
        if (elements[i].committed) MPI_Type_free(&elements[i].type);
    free(elements);
}

const struct element *element_of(MPI_Datatype type) {
    for (int i = 0; i < element_count; i++)
        if (elements[i].type == type) return &elements[i];
    return NULL;
}

int word_partners(const struct element *element, int index) {
    int found[64], count = 0;
    for (int i = 0; i < element_count; i++)
        if (elements[i].kind == element->kind && elements[i].kind == WORDS && elements[i].blocks == element->blocks)
            found[count++] = i;
    return count ? found[index % count] : (int)(element - elements);
}

size_t span_of(const struct element *element, int64_t count, ptrdiff_t *before) {
    ptrdiff_t low = 0, high = 0;
    for (int end = 0; end < 2 && count > 0; end++) {
        ptrdiff_t at = end ? (ptrdiff_t)(count - 1) * element->extent : 0;
        for (int i = 0; i < element->blocks; i++) {
            ptrdiff_t first = at + element->block[i].offset, last = first + (ptrdiff_t)element->block[i].bytes;
            low = first < low ? first : low;
            high = last > high ? last : high;
        }
    }
    *before = -low;
    return (size_t)(high - low);
}

void unpacked(const struct element *element, const unsigned char *values, int64_t count, unsigned char *base) {
    for (int64_t i = 0; i < count; i++)
        for (int b = 0; b < element->blocks; b++) {
            memcpy(base + i * element->extent + element->block[b].offset, values, element->block[b].bytes);
            values += element->block[b].bytes;
        }
}

void packed(const struct element *element, const unsigned char *base, int64_t count, unsigned char *values) {
    for (int64_t i = 0; i < count; i++)
        for (int b = 0; b < element->blocks; b++) {
            memcpy(values, base + i * element->extent + element->block[b].offset, element->block[b].bytes);
            values += element->block[b].bytes;
        }
}

void cleaned(const struct element *element, unsigned char *values, int64_t count) {
    size_t number = sizeof(long double);
    if (element->significant >= element->block[0].bytes || element->significant != 10) return;
    size_t numbers = element->block[0].bytes / number;
    for (int64_t i = 0; i < count; i++)
        for (size_t n = 0; n < numbers; n++)
            memset(values + (size_t)i * element->size + n * number + 10, 0, number - 10);
}
