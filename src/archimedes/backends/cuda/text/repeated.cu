extern "C" __global__ void $bounds $name($heads)
{
    $locals
    const int64_t total = many[0];
    const double sign = items[0];
    bool busy = false;
    uint64_t k = 0;
    int64_t next = 0;
    double *into = results;
    for (;;) {
        if (!busy) {
            k = atomicAdd(queue, 1ULL);
            if (k >= count) break;
            $load
            next = done[k];
            into = results + places[k] * total * $size;
            busy = true;
        }
        ${name}_step($step);
        $advance
        const double end = sign * row[$key];
        while (next < total && sign * items[1 + next] <= end) {
            ${name}_at(row, items + 1 + next, x);
    #pragma unroll
            for (int i = 0; i < $size; ++i) into[next * $size + i] = x[i];
            ++next;
        }
        if (!flag1[0] || next >= total) {
            $store
            done[k] = next;
            busy = false;
        }
    }
}
