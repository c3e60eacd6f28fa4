/* Lowers folds to moves and reductions: bit by bit the schedule's result, with as few moves as possible.
 *
 * A reduction is MPI_Reduce_local: to = from op to. The second operand therefore is overwritten by the result, unless
 * operands may be exchanged. Only dead operands may be overwritten. */
#include "lower.h"

static uint32_t first_receive(const tutti_lowering *lowering)
{
    return lowering->code->step[lowering->step].receive;
}

static uint32_t end_of_receives(const tutti_lowering *lowering)
{
    return lowering->code->step[lowering->step + 1].receive;
}

/* Whether a local op reads or writes chunks of a slot. */
static int touches(const tutti_code *code, const tutti_code_local *local, uint32_t slot, uint32_t first, uint32_t count)
{
    if (local->kind == TUTTI_COPY)
        return (local->from == slot && tutti_overlap(local->first, local->count, first, count)) ||
               (local->into == slot && tutti_overlap(local->to, local->count, first, count));
    int named = local->into == slot;
    for (uint32_t i = 0; i < local->operands; i++)
        named |= code->operands[local->operand + i] == slot;
    return named && tutti_overlap(local->first, local->count, first, count);
}

/* How often a slot appears among a fold's operands from index `from` on. */
static uint32_t occurrences(const tutti_code *code, const tutti_code_local *fold, uint32_t slot, uint32_t from)
{
    uint32_t found = 0;
    for (uint32_t i = from; i < fold->operands; i++)
        found += code->operands[fold->operand + i] == slot;
    return found;
}

/* The first local op of the step that touches the received chunks, if it is a fold of exactly these chunks into another slot;
 * else TUTTI_NOWHERE. Redirecting an operand that must stay the first one saves nothing. */
static uint32_t fold_of(const tutti_lowering *lowering, const tutti_code_message *receive)
{
    const tutti_code *code = lowering->code;
    uint32_t i = code->step[lowering->step].local, end = code->step[lowering->step + 1].local;
    while (i < end && !touches(code, &code->locals[i], receive->slot, receive->first, receive->count))
        i++;
    if (i == end)
        return TUTTI_NOWHERE;
    const tutti_code_local *fold = &code->locals[i];
    int fits = fold->kind == TUTTI_FOLD && fold->into != receive->slot && fold->first == receive->first &&
               fold->count == receive->count && occurrences(code, fold, receive->slot, 0) == 1 &&
               !(lowering->out->form.strict && code->operands[fold->operand] == receive->slot);
    return fits ? i : TUTTI_NOWHERE;
}

/* Whether the fold's destination is unused between the start of the step and the fold. */
static int place_is_free(const tutti_lowering *lowering, uint32_t local)
{
    const tutti_code *code = lowering->code;
    const tutti_code_local *fold = &code->locals[local];
    uint32_t place = tutti_area_written(lowering, fold->into);
    if (occurrences(code, fold, fold->into, 0) > 0 &&
        tutti_area_origin(lowering, fold->into, fold->first, fold->count) != TUTTI_UNTOUCHED)
        return 0;
    for (uint32_t i = code->step[lowering->step].local; i < local; i++)
        if (touches(code, &code->locals[i], fold->into, fold->first, fold->count))
            return 0;
    for (uint32_t i = code->step[lowering->step].send; i < code->step[lowering->step + 1].send; i++) {
        const tutti_transfer *send = &lowering->out->sends[i];
        if (send->area == place && tutti_overlap(send->first, send->count, fold->first, fold->count))
            return 0;
    }
    for (uint32_t i = first_receive(lowering); i < end_of_receives(lowering); i++) {
        const tutti_code_message *other = &code->receives[i];
        uint32_t area = lowering->redirected[i - first_receive(lowering)];
        area = area == TUTTI_NOWHERE ? tutti_area_written(lowering, other->slot) : area;
        if (area == place && tutti_overlap(other->first, other->count, fold->first, fold->count))
            return 0;
    }
    return 1;
}

void tutti_fold_redirect(tutti_lowering *lowering)
{
    const tutti_code *code = lowering->code;
    for (uint32_t i = first_receive(lowering); i < end_of_receives(lowering); i++)
        lowering->redirected[i - first_receive(lowering)] = TUTTI_NOWHERE;
    for (uint32_t i = first_receive(lowering); i < end_of_receives(lowering); i++) {
        const tutti_code_message *receive = &code->receives[i];
        uint32_t local = fold_of(lowering, receive);
        if (local == TUTTI_NOWHERE || !place_is_free(lowering, local))
            continue;
        if (tutti_code_dead_after(code, lowering->info, lowering->step, local, receive->slot, receive->first,
                                  receive->count))
            lowering->redirected[i - first_receive(lowering)] =
                tutti_area_written(lowering, code->locals[local].into);
    }
}

/* State of lowering one fold. */
typedef struct {
    tutti_lowering *lowering;
    const tutti_code_local *fold;
    uint32_t local;
    const uint32_t *areas; /* of the operands */
    uint32_t last_in_place; /* the last operand in the destination area, or TUTTI_NOWHERE */
    uint32_t place;         /* the destination area */
    uint32_t accumulator;   /* the area of x1 op ... op xi */
    int own;                /* whether the accumulator may be overwritten */
} folding;

/* The area of an operand: its slot's, or the one to which its message was redirected. */
static uint32_t operand_area(const folding *of, uint32_t slot)
{
    tutti_lowering *lowering = of->lowering;
    for (uint32_t r = first_receive(lowering); r < end_of_receives(lowering); r++) {
        const tutti_code_message *receive = &lowering->code->receives[r];
        uint32_t area = lowering->redirected[r - first_receive(lowering)];
        if (area == of->place && receive->slot == slot && receive->first == of->fold->first &&
            receive->count == of->fold->count && fold_of(lowering, receive) == of->local)
            return area;
    }
    return tutti_area_read(lowering, slot, of->fold->first, of->fold->count);
}

/* Determines the area of every operand; an operand that is partly in the origin is moved out of it. */
static void find_operands(folding *of)
{
    uint32_t *areas = of->lowering->operands;
    of->last_in_place = TUTTI_NOWHERE;
    for (uint32_t i = 0; i < of->fold->operands; i++) {
        areas[i] = operand_area(of, of->lowering->code->operands[of->fold->operand + i]);
        if (areas[i] == of->place)
            of->last_in_place = i;
    }
    of->areas = areas;
}

/* Whether operand `i` or a later one lies in the destination. */
static int place_needed(const folding *of, uint32_t i)
{
    return of->last_in_place != TUTTI_NOWHERE && of->last_in_place >= i;
}

/* Whether operand `i` may be overwritten. */
static int expendable(const folding *of, uint32_t i)
{
    const tutti_lowering *lowering = of->lowering;
    uint32_t slot = lowering->code->operands[of->fold->operand + i];
    if (of->areas[i] == of->place)
        return !place_needed(of, i + 1);
    return of->areas[i] != TUTTI_ORIGIN && occurrences(lowering->code, of->fold, slot, i + 1) == 0 &&
           tutti_code_dead_after(lowering->code, lowering->info, lowering->step, of->local, slot, of->fold->first,
                                 of->fold->count);
}

static void move(const folding *of, uint32_t from, uint32_t to)
{
    tutti_emit(of->lowering, (tutti_local_op){TUTTI_MOVE, from, to, of->fold->first, of->fold->count, of->fold->first});
}

static void reduce(folding *of, uint32_t from, uint32_t to)
{
    tutti_emit(of->lowering,
               (tutti_local_op){TUTTI_REDUCTION, from, to, of->fold->first, of->fold->count, of->fold->first});
    of->accumulator = to;
    of->own = 1;
}

/* An area for an intermediate result: the destination if it is free, else a temporary. */
static uint32_t spare(const folding *of, uint32_t i)
{
    if (of->accumulator != of->place && !place_needed(of, i))
        return of->place;
    uint32_t temporary = TUTTI_SCRATCH + of->lowering->info->slots;
    return of->accumulator == temporary ? temporary + 1 : temporary;
}

/* accumulator = accumulator op operand `i`. The result overwrites the operand, the accumulator (operands exchanged), or a
 * copy of the operand. */
static void take(folding *of, uint32_t i)
{
    uint32_t operand = of->areas[i];
    int distinct = operand != of->accumulator;
    int exchange = !of->lowering->out->form.strict && of->own && distinct;
    if (distinct && operand == of->place && !place_needed(of, i + 1)) {
        reduce(of, of->accumulator, operand);
    } else if (exchange) {
        reduce(of, operand, of->accumulator);
    } else if (distinct && expendable(of, i)) {
        reduce(of, of->accumulator, operand);
    } else {
        uint32_t target = spare(of, i);
        move(of, operand, target);
        reduce(of, of->accumulator, target);
    }
}

void tutti_fold_lower(tutti_lowering *lowering, uint32_t local)
{
    const tutti_code_local *fold = &lowering->code->locals[local];
    folding of = {.lowering = lowering, .fold = fold, .local = local};
    of.place = tutti_area_written(lowering, fold->into);
    find_operands(&of);
    of.accumulator = of.areas[0];
    of.own = expendable(&of, 0);
    for (uint32_t i = 1; i < fold->operands; i++)
        take(&of, i);
    if (of.accumulator != of.place)
        move(&of, of.accumulator, of.place);
    tutti_area_mark_written(lowering, fold->into, fold->first, fold->count);
}
