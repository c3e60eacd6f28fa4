/* Calls collectives as an application does, without measuring: `tutti tune` counts the messages of such runs.
 *
 * The difference between a run with calls and a run without any is what the collectives send. */
#include "bench.h"

void bench_once(bench_run *run)
{
    for (int g = 0; g < run->job->n_groups; g++) {
        const bench_group *group = &run->job->groups[g];
        bench_data *data = bench_data_new(group, run->rank, run->ranks);
        bench_data_poison(data, group, run->rank);
        for (int i = 0; i < run->job->once; i++)
            bench_check(bench_as_application(group, data, run), "a collective");
        const int64_t wrong = run->job->once ? bench_data_wrong(data, group, run->rank, run->ranks) : 0;
        if (wrong)
            bench_fail("%lld elements are wrong on rank %d", (long long)wrong, run->rank);
        bench_data_free(data);
    }
}
