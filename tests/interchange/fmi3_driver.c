/* Calls an FMU of a bouncing ball as importers do, and as they should not. It prints what failed and
   returns the number of failures. The FMU's C file is included, so that sanitizers see all of it. */

#include "fmi3.c"

static int failures;
static int messages;
static char last_message[512];

static void check(bool good, const char *what)
{
    if (!good) {
        ++failures;
        printf("failed: %s (last message: %s)\n", what, last_message);
    }
}

static void keep_message(fmi3InstanceEnvironment environment, fmi3Status status,
                         fmi3String category, fmi3String message)
{
    (void)environment;
    (void)status;
    (void)category;
    ++messages;
    (void)snprintf(last_message, sizeof last_message, "%s", message);
}

static bool stop_after_first_step(void)
{
    return true;
}

static int updates;

static void intermediate_update(fmi3InstanceEnvironment environment, fmi3Float64 time,
                                fmi3Boolean set_requested, fmi3Boolean get_allowed,
                                fmi3Boolean step_finished, fmi3Boolean can_return_early,
                                fmi3Boolean *early_return_requested, fmi3Float64 *early_return_time)
{
    (void)set_requested;
    check(get_allowed && step_finished, "intermediate update allows reading");
    ++updates;
    *early_return_requested = environment != NULL && can_return_early && stop_after_first_step();
    *early_return_time = time;
}

static fmi3Instance make(fmi3String token, bool early)
{
    static int stop;
    return fmi3InstantiateCoSimulation("ball", token, NULL, false, true, false, early, NULL, 0,
                                       early ? &stop : NULL, keep_message, intermediate_update);
}

static void start(fmi3Instance fmu)
{
    check(fmi3EnterInitializationMode(fmu, false, 0.0, 0.0, false, 0.0) == fmi3OK, "enter init");
    check(fmi3ExitInitializationMode(fmu) == fmi3OK, "exit init");
}

static fmi3Status step(fmi3Instance fmu, double time, double size, bool *early, double *last)
{
    bool event;
    bool end;
    return fmi3DoStep(fmu, time, size, false, &event, &end, early, last);
}

static double height(fmi3Instance fmu)
{
    const fmi3ValueReference reference = HEIGHT;
    double value = -1.0;
    check(fmi3GetFloat64(fmu, &reference, 1, &value, 1) == fmi3OK, "read the height");
    return value;
}

static double run(fmi3Instance fmu, int from, int to)
{
    int k;
    for (k = from; k < to; ++k) {
        bool early;
        double last;
        check(step(fmu, k / 16.0, 1.0 / 16.0, &early, &last) == fmi3OK, "step");
        check(!early && last == (k + 1) / 16.0, "a step reaches its end");
    }
    return height(fmu);
}

static bool complains(fmi3Status status, const char *words)
{
    const bool good = status == fmi3Error && strstr(last_message, words) != NULL;
    last_message[0] = '\0';
    return good;
}

static void check_wrong_calls(void)
{
    const fmi3ValueReference missing = 12345;
    const fmi3ValueReference wrong[] = {HEIGHT, GRAVITY};
    bool early;
    bool truth;
    double value[2] = {1.0, 2.0};
    double last;
    fmi3FMUState state = NULL;
    fmi3Instance fmu;
    check(make("{no}", false) == NULL && strstr(last_message, "token") != NULL, "wrong token");
    check(fmi3DoStep(NULL, 0.0, 1.0, false, &early, &early, &early, &last) == fmi3Error, "NULL");
    check(fmi3InstantiateCoSimulation("a", INSTANTIATION_TOKEN, NULL, false, true, true, false,
                                      NULL, 0, NULL, keep_message, NULL) == NULL,
          "event mode is refused");
    fmu = make(INSTANTIATION_TOKEN, false);
    check(fmu != NULL, "instantiate");
    check(complains(step(fmu, 0.0, 1.0, &early, &last), "'instantiated'"), "step at once");
    check(complains(fmi3ExitInitializationMode(fmu), "'instantiated'"), "exit without enter");
    check(complains(fmi3EnterInitializationMode(fmu, false, 0.0, 1.0, true, 0.5), "stop time"),
          "stop before start");
    check(complains(fmi3EnterInitializationMode(fmu, true, -1.0, 0.0, false, 0.0), "tolerance"),
          "tolerance");
    start(fmu);
    check(complains(step(fmu, 0.0, 0.0, &early, &last), "positive"), "step of length zero");
    check(complains(step(fmu, 0.0, 0.0 / 0.0, &early, &last), "positive"), "step of length nan");
    check(complains(step(fmu, 3.0, 0.1, &early, &last), "communication point"), "jump in time");
    check(complains(fmi3GetFloat64(fmu, &missing, 1, value, 1), "12345"), "unknown reference");
    check(complains(fmi3GetFloat64(fmu, wrong, 2, value, 1), "nValues"), "too few values");
    check(complains(fmi3GetFloat64(fmu, wrong, 1, value, 2), "nValues"), "too many values");
    check(complains(fmi3GetBoolean(fmu, wrong, 1, &truth, 1), "Boolean"), "wrong type");
    check(complains(fmi3SetFloat64(fmu, wrong, 1, value, 1), "step mode"), "set a state");
    check(complains(fmi3SetTime(fmu, 1.0), "'step mode'"), "set time in co-simulation");
    check(complains(fmi3ActivateModelPartition(fmu, 0, 1.0), "'step mode'"), "activate");
    check(complains(fmi3DeserializeFMUState(fmu, (const fmi3Byte *)"abc", 3, &state), "not a state"),
          "deserialize garbage");
    check(complains(fmi3SetFMUState(fmu, NULL), "NULL"), "set no state");
    check(fmi3Terminate(fmu) == fmi3OK, "terminate");
    check(complains(step(fmu, 0.0, 1.0, &early, &last), "'terminated'"), "step after the end");
    fmi3FreeInstance(fmu);
    fmi3FreeInstance(NULL);
}

static void check_states(void)
{
    fmi3Instance first = make(INSTANTIATION_TOKEN, false);
    fmi3Instance second = make(INSTANTIATION_TOKEN, false);
    fmi3FMUState state = NULL;
    fmi3FMUState copy = NULL;
    fmi3Byte *bytes;
    size_t size = 0;
    double end;
    double again;
    start(first);
    start(second);
    (void)run(first, 0, 8);
    check(fmi3GetFMUState(first, &state) == fmi3OK, "get state");
    end = run(first, 8, 20);
    check(fmi3SerializedFMUStateSize(first, state, &size) == fmi3OK && size > 0, "size");
    bytes = (fmi3Byte *)malloc(size);
    check(fmi3SerializeFMUState(first, state, bytes, size) == fmi3OK, "serialize");
    check(complains(fmi3SerializeFMUState(first, state, bytes, size - 1), "small"), "short buffer");
    check(fmi3DeserializeFMUState(second, bytes, size, &copy) == fmi3OK, "deserialize");
    check(fmi3SetFMUState(second, copy) == fmi3OK, "set state");
    again = run(second, 8, 20);
    check(memcmp(&end, &again, sizeof end) == 0, "the state of one instance goes on in another");
    check(fmi3SetFMUState(first, state) == fmi3OK, "set state back");
    again = run(first, 8, 20);
    check(memcmp(&end, &again, sizeof end) == 0, "a run goes back");
    check(fmi3Reset(first) == fmi3OK, "reset");
    start(first);
    again = run(first, 0, 20);
    check(memcmp(&end, &again, sizeof end) == 0, "a run starts again after reset");
    check(fmi3FreeFMUState(first, &state) == fmi3OK && state == NULL, "free state");
    check(fmi3FreeFMUState(first, &copy) == fmi3OK, "free copy");
    free(bytes);
    fmi3FreeInstance(first);
    fmi3FreeInstance(second);
}

static void check_early_return(void)
{
    fmi3Instance fmu = make(INSTANTIATION_TOKEN, true);
    bool early = false;
    double last = 0.0;
    double time = 0.0;
    double end;
    double straight;
    fmi3Instance other = make(INSTANTIATION_TOKEN, false);
    start(fmu);
    start(other);
    updates = 0;
    check(step(fmu, 0.0, 0.25, &early, &last) == fmi3OK && early && last < 0.25, "early return");
    check(updates == 1, "one update");
    for (time = last; time < 0.25; time = last) {
        check(step(fmu, time, 0.25 - time, &early, &last) == fmi3OK, "go on");
    }
    end = height(fmu);
    straight = run(other, 0, 4);
    check(memcmp(&end, &straight, sizeof end) == 0, "early returns change no bits");
    fmi3FreeInstance(fmu);
    fmi3FreeInstance(other);
}

static void check_model_exchange(void)
{
    fmi3Instance fmu = fmi3InstantiateModelExchange("me", INSTANTIATION_TOKEN, NULL, false, true,
                                                    NULL, keep_message);
    bool need;
    bool end;
    bool nominal;
    bool values;
    bool defined;
    double next;
    double x[2];
    double dx[2];
    double z;
    start(fmu);
    check(fmi3UpdateDiscreteStates(fmu, &need, &end, &nominal, &values, &defined, &next) == fmi3OK,
          "first update");
    check(!need && !end && !values && !defined, "nothing happens at the start");
    check(fmi3EnterContinuousTimeMode(fmu) == fmi3OK, "continuous time");
    check(fmi3GetContinuousStates(fmu, x, 2) == fmi3OK, "states");
    x[0] = -0.001;
    x[1] = -3.0;
    check(fmi3SetContinuousStates(fmu, x, 2) == fmi3OK, "set states");
    check(complains(fmi3SetContinuousStates(fmu, x, 1), "number of states"), "too few states");
    check(fmi3GetContinuousStateDerivatives(fmu, dx, 2) == fmi3OK && dx[0] == -3.0, "derivative");
    check(fmi3GetEventIndicators(fmu, &z, 1) == fmi3OK && z == -0.001, "indicator");
    check(fmi3EnterEventMode(fmu) == fmi3OK, "event mode");
    check(fmi3UpdateDiscreteStates(fmu, &need, &end, &nominal, &values, &defined, &next) == fmi3OK,
          "update");
    check(values && fmi3GetContinuousStates(fmu, x, 2) == fmi3OK && x[1] > 0.0, "the ball bounces");
    check(fmi3UpdateDiscreteStates(fmu, &need, &end, &nominal, &values, &defined, &next) == fmi3OK &&
              !values,
          "only once");
    fmi3FreeInstance(fmu);
}

static void check_scheduled_execution(void)
{
    fmi3Instance fmu = fmi3InstantiateScheduledExecution("se", INSTANTIATION_TOKEN, NULL, false,
                                                         true, NULL, keep_message, NULL, NULL, NULL);
    const fmi3ValueReference clock = clocks[0].reference;
    double interval = 0.0;
    double before;
    fmi3IntervalQualifier qualifier;
    start(fmu);
    check(fmi3GetIntervalDecimal(fmu, &clock, 1, &interval, &qualifier) == fmi3OK &&
              interval == FIXED_STEP,
          "interval");
    before = height(fmu);
    check(fmi3ActivateModelPartition(fmu, clock, 0.0) == fmi3OK && height(fmu) == before,
          "the first activation is the start");
    check(fmi3ActivateModelPartition(fmu, clock, FIXED_STEP) == fmi3OK && height(fmu) < before,
          "the ball falls");
    check(complains(fmi3ActivateModelPartition(fmu, 77777, 1.0), "77777"), "unknown clock");
    fmi3FreeInstance(fmu);
}

int main(void)
{
    check_wrong_calls();
    check_states();
    check_early_return();
    check_model_exchange();
    check_scheduled_execution();
    printf("%d failures\n", failures);
    return failures;
}
