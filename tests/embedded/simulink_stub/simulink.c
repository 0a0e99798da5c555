/* Included by the S-function: runs it as Simulink does. From the standard input it reads the dialog
 * parameters (their number, then for each its count and values), the number of steps, and for each
 * step the inputs; it writes the sizes of the ports and, for each step, the outputs. */

static size_t port_width(const port_t *p) { return (size_t)p->dims[0] * (size_t)p->dims[1]; }

static double read_number(void)
{
    double value;
    if (scanf("%lf", &value) != 1) exit(3);
    return value;
}

static void put(const port_t *p, size_t k, double value)
{
    switch (p->type) {
    case SS_DOUBLE: ((double *)p->signal)[k] = value; break;
    case SS_SINGLE: ((float *)p->signal)[k] = (float)value; break;
    case SS_INT32: ((int32_t *)p->signal)[k] = (int32_t)value; break;
    default: ((boolean_T *)p->signal)[k] = value != 0.0;
    }
}

static double get(const port_t *p, size_t k)
{
    switch (p->type) {
    case SS_DOUBLE: return ((double *)p->signal)[k];
    case SS_SINGLE: return ((float *)p->signal)[k];
    case SS_INT32: return ((int32_t *)p->signal)[k];
    default: return ((boolean_T *)p->signal)[k];
    }
}

static void describe(const char *side, port_t *p, int count)
{
    for (int k = 0; k < count; k++) {
        p[k].signal = calloc(port_width(&p[k]), 8);
        printf("%s %d %d %d %d %d\n", side, p[k].ndim, p[k].dims[0], p[k].dims[1], p[k].type,
               p[k].feedthrough + p[k].contiguous);
    }
}

static void read_parameters_of_dialog(SimStruct *S, int count)
{
    for (int k = 0; k < count; k++) {
        mxArray *a = &S->parameters[k];
        a->count = (size_t)read_number();
        a->data = (double *)malloc(sizeof(double) * (a->count + 1));
        for (size_t i = 0; i < a->count; i++) a->data[i] = read_number();
    }
}

int main(void)
{
    static SimStruct simulation, *S = &simulation;
    S->given = (int)read_number();
    read_parameters_of_dialog(S, S->given);
    mdlInitializeSizes(S);
    if (S->error != NULL || S->expected != S->given) {
        printf("error %s\n", S->error != NULL ? S->error : "number of parameters");
        return 0;
    }
    mdlInitializeSampleTimes(S);
    printf("step %.17g %d\n", S->step, S->operating_point);
    describe("in", S->in, S->inputs);
    describe("out", S->out, S->outputs);
    mdlStart(S);
    const int steps = (int)read_number();
    for (int n = 0; n < steps; n++) {
        for (int k = 0; k < S->inputs; k++)
            for (size_t i = 0; i < port_width(&S->in[k]); i++) put(&S->in[k], i, read_number());
        mdlOutputs(S, 0);
        mdlOutputs(S, 0); /* Simulink may ask twice. */
        for (int k = 0; k < S->outputs; k++)
            for (size_t i = 0; i < port_width(&S->out[k]); i++) printf("%a ", get(&S->out[k], i));
        printf("\n");
        mdlUpdate(S, 0);
        if (n == 1) mdlProcessParameters(S);
    }
    mdlTerminate(S);
    return 0;
}
