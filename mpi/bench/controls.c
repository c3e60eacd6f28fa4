/* Control variables of the MPI library (MPI_T), which force it to run one of its algorithms.
 *
 * Open MPI reads them when a communicator is created, MPICH at every call. So each set is written while its communicator is
 * created and during its blocks, and the previous values are restored afterwards. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { WIDEST_VALUE = 512, LONGEST_NAME = 256, LONGEST_TEXT = 8192 };

struct bench_control {
    int set;
    char name[LONGEST_NAME], text[WIDEST_VALUE];
    MPI_T_cvar_handle handle; /* bound by bench_controls_open */
    MPI_Datatype type;
    char value[WIDEST_VALUE], before[WIDEST_VALUE]; /* in the variable's datatype */
};

void bench_controls_add(bench_job *job, const char *line)
{
    bench_control one = {0};
    if (sscanf(line, "control %d %255s %511s", &one.set, one.name, one.text) != 3)
        bench_fail("job file: invalid control `%s`", line);
    job->controls = realloc(job->controls, sizeof one * (size_t)(job->n_controls + 1));
    if (!job->controls)
        bench_fail("out of memory for the job");
    job->controls[job->n_controls++] = one;
}

/* The number of an item that an enumeration names; -1 if it names none. */
static int in_enumeration(MPI_T_enum items, const char *text)
{
    char name[LONGEST_NAME];
    int count = 0, value, length = sizeof name;
    if (items == MPI_T_ENUM_NULL || MPI_T_enum_get_info(items, &count, name, &length))
        return -1;
    for (int i = 0; i < count; i++) {
        length = sizeof name;
        if (!MPI_T_enum_get_item(items, i, &value, name, &length) && !strcmp(name, text))
            return value;
    }
    return -1;
}

/* The number of an item that a description lists, one `NAME - TEXT` in each line; -1 if it lists none. MPICH 4 and 5 number
 * them so, and provide no enumeration. */
static int in_description(char *description, const char *text)
{
    char name[LONGEST_NAME], dash[2], *rest = NULL;
    int number = 0;
    for (char *line = strtok_r(description, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%255s %1s", name, dash) != 2 || dash[0] != '-')
            continue;
        if (!strcmp(name, text))
            return number;
        number++;
    }
    return -1;
}

static int number_of(const bench_control *control, MPI_T_enum items, char *description)
{
    char *end;
    int number = (int)strtol(control->text, &end, 10);
    if (end != control->text && !*end)
        return number;
    number = in_enumeration(items, control->text);
    if (number < 0)
        number = in_description(description, control->text);
    if (number < 0)
        bench_fail("the MPI library's %s has no value `%s`", control->name, control->text);
    return number;
}

static void read_text(bench_control *control, MPI_T_enum items, char *description)
{
    if (control->type == MPI_CHAR) {
        memcpy(control->value, control->text, sizeof control->value);
    } else if (control->type == MPI_INT || control->type == MPI_UNSIGNED || control->type == MPI_C_BOOL) {
        const int number = number_of(control, items, description);
        if (control->type == MPI_C_BOOL)
            control->value[0] = number != 0;
        else
            memcpy(control->value, &number, sizeof number);
    } else {
        bench_fail("the MPI library's %s has a datatype that is not supported", control->name);
    }
}

static void open_control(bench_control *control)
{
    char name[LONGEST_NAME], description[LONGEST_TEXT];
    int index, length = sizeof name, longest = sizeof description, verbosity, bind, scope, count;
    MPI_T_enum items;
    if (MPI_T_cvar_get_index(control->name, &index))
        bench_fail("the MPI library has no control variable %s", control->name);
    bench_check(MPI_T_cvar_get_info(index, name, &length, &verbosity, &control->type, &items, description, &longest, &bind,
                                    &scope),
                control->name);
    bench_check(MPI_T_cvar_handle_alloc(index, NULL, &control->handle, &count), control->name);
    if (count > WIDEST_VALUE)
        bench_fail("the MPI library's %s is too long", control->name);
    read_text(control, items, description);
}

void bench_controls_open(const bench_job *job)
{
    int level;
    if (!job->n_controls)
        return;
    bench_check(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), "MPI_T_init_thread");
    for (int i = 0; i < job->n_controls; i++)
        open_control(&job->controls[i]);
}

void bench_controls_close(const bench_job *job)
{
    for (int i = 0; i < job->n_controls; i++)
        MPI_T_cvar_handle_free(&job->controls[i].handle);
    if (job->n_controls)
        MPI_T_finalize();
}

void bench_controls_write(const bench_job *job, int set)
{
    for (int i = 0; i < job->n_controls; i++) {
        bench_control *one = &job->controls[i];
        if (one->set != set)
            continue;
        bench_check(MPI_T_cvar_read(one->handle, one->before), one->name);
        bench_check(MPI_T_cvar_write(one->handle, one->value), one->name);
    }
}

void bench_controls_restore(const bench_job *job, int set)
{
    for (int i = job->n_controls - 1; i >= 0; i--) {
        const bench_control *one = &job->controls[i];
        if (one->set == set)
            bench_check(MPI_T_cvar_write(one->handle, one->before), one->name);
    }
}
