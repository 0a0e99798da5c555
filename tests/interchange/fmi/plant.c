/* A plant for tests of imports, written against the text of FMI 2.0 (FMI=2) and 3.0 (FMI=3).

   A pendulum with a torque, a ball that bounces, and a counter of time events:
     angle' = rate,  rate' = -(g / length) sin(angle) + torque,  h' = v,  v' = -g,
     h = 0 and falling: v := -e v, bounces += 1;  every 0.25 s: ticks += 1.
   The parameter `fault` makes it misbehave. Co-simulation takes Euler steps of 1 ms. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANGLE, RATE, H, V, DANGLE, DRATE, DH, DV, TORQUE, G, LENGTH, E, TIP, REALS };
enum { FAULT = 20, BOUNCES, TICKS, LAST_INTEGER };
enum { ON = 30, LABEL = 40, GAIN = 50 };
enum { OK, WARNING, DISCARD, ERROR, FATAL };
#define TOKEN "{plant-1}"
/* How it says that the ball meets the floor. 0: the height, and the floor lets it go. 1: one of two
   values. 2: the height with a hysteresis, as in Qtronic's FMU SDK: whatever event happens at a
   height that is not positive turns the ball. */
#ifndef ZERO
#define ZERO 0
#endif
/* With a hysteresis there is no event in time, which would mend what rounding spoilt. */
#define TICK (ZERO == 2 ? 1e9 : 0.25)

typedef struct {
    double r[REALS], gain[3], t, next;
    int i[LAST_INTEGER - FAULT], on, pending, stops, above;
    char label[32];
    void (*log)(void);
    void *env;
} Plant;

static int alive = 0;

#if FMI == 2
typedef int Bool;
typedef void (*Logger)(void *, const char *, int, const char *, const char *, ...);
typedef struct {
    Logger logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *env;
} Callbacks;
static void say(Plant *p, int status, const char *text) {
    ((Logger)p->log)(p->env, "plant", status, "logStatus", "%s (fault %d)", text, p->i[0]);
}
#define F(name) fmi2##name
#else
#include <stdbool.h>
typedef bool Bool;
typedef void (*Logger)(void *, int, const char *, const char *);
static void say(Plant *p, int status, const char *text) {
    ((Logger)p->log)(p->env, status, "logStatus", text);
}
#define F(name) fmi3##name
#endif

static Plant *make(const char *token, void (*log)(void), void *env) {
    Plant *p;
    static Plant refused;
    refused.log = log, refused.env = env;
    if (strcmp(token, TOKEN)) {
        say(&refused, ERROR, "the token is not mine");
        return NULL;
    }
    p = calloc(1, sizeof *p);
    p->log = log, p->env = env;
    p->r[ANGLE] = 0.5, p->r[H] = 1.0, p->r[G] = 9.81, p->r[LENGTH] = 1.0, p->r[E] = 0.7;
    p->gain[0] = 1.0, p->gain[1] = 2.0, p->gain[2] = 3.0;
    strcpy(p->label, "none");
    p->above = 1;
    p->next = TICK;
    alive++;
    return p;
}

static void compute(Plant *p) {
    double *r = p->r;
    r[DANGLE] = r[RATE];
    r[DRATE] = -r[G] / r[LENGTH] * sin(r[ANGLE]) + r[TORQUE];
    r[DH] = r[V];
    r[DV] = -r[G];
    r[TIP] = r[LENGTH] * sin(r[ANGLE]);
}

static int misbehave(Plant *p) {
    if (p->i[0] == 1) { say(p, ERROR, "the pendulum broke"); return ERROR; }
    if (p->i[0] == 2) return DISCARD;
    if (p->i[0] == 4) { say(p, FATAL, "all is lost"); return FATAL; }
    if (p->i[0] == 7) p->r[DV] = NAN;
    return OK;
}

static void update(Plant *p) {
    p->above = p->r[H] > 0.0;
    if (ZERO == 2 ? !p->above : p->r[H] <= 0.0 && p->r[V] < 0.0) {
        if (ZERO == 0) p->r[H] = 0.0;
        p->r[V] *= -p->r[E];
        p->i[BOUNCES - FAULT]++;
        p->pending = 1;
    }
    if (p->t >= p->next - 1e-12) {
        p->i[TICKS - FAULT]++;
        p->next += TICK;
    }
}

static int is_due(Plant *p) {
    return (p->r[H] <= 0.0 && p->r[V] < 0.0) || p->t >= p->next - 1e-12;
}

/* Steps; one that `stops` at events returns 1 with its time there. */
static int stopped;
static int step(Plant *p, double t, double h) {
    long k, n = lround(h / 1e-3);
    int status;
    compute(p);
    if ((status = misbehave(p))) return status;
    if (p->i[0] == 6 && t >= 0.5) { say(p, ERROR, "no step after half a second"); return ERROR; }
    for (k = 0; k < n; k++) {
        compute(p);
        for (int j = 0; j < 4; j++) p->r[j] += 1e-3 * p->r[DANGLE + j];
        p->t = t + (k + 1) * 1e-3;
        stopped = p->stops && is_due(p);
        if (stopped) return OK;
        update(p);
    }
    p->t = t + h;
    compute(p);
    return OK;
}

int F(CompletedIntegratorStep)(Plant *p, Bool no, Bool *event, Bool *end) {
    *event = 0;
    *end = p->i[0] == 5 && p->t > 0.3;
    return OK;
}
int F(SetTime)(Plant *p, double t) { p->t = t; return OK; }
int F(SetContinuousStates)(Plant *p, const double *x, size_t n) {
    memcpy(p->r, x, n * sizeof *x);
    return OK;
}
int F(GetContinuousStates)(Plant *p, double *x, size_t n) {
    memcpy(x, p->r, n * sizeof *x);
    return OK;
}
int F(GetNominalsOfContinuousStates)(Plant *p, double *x, size_t n) {
    while (n--) x[n] = 1.0;
    return OK;
}
int F(GetEventIndicators)(Plant *p, double *z, size_t n) {
    if (ZERO == 0) z[0] = p->r[H] == 0.0 && p->r[V] > 0.0 ? 1e-12 : p->r[H];
    if (ZERO == 1) z[0] = p->r[H] > 0.0 ? 1.0 : -1.0;
    if (ZERO == 2) z[0] = p->r[H] + (p->above ? 1e-14 : -1e-14);
    return OK;
}
int F(EnterEventMode)(Plant *p) { return OK; }
int F(EnterContinuousTimeMode)(Plant *p) { return OK; }
int F(ExitInitializationMode)(Plant *p) { return OK; }
static int ended = 0;
int F(Terminate)(Plant *p) { ended++; return OK; }
int plants_ended(void) { return ended; }
int F(Reset)(Plant *p) { return ERROR; }
void F(FreeInstance)(Plant *p) { alive--; free(p); }
int plants_alive(void) { return alive; }

static int derivative(Plant *p, const unsigned *z, size_t nz, const unsigned *v, size_t nv,
                      const double *dv, double *dz) {
    double d[REALS] = {0}, *r = p->r;
    size_t k;
    for (k = 0; k < nv; k++) d[v[k]] += dv[k];
    d[DANGLE] = d[RATE];
    d[DRATE] = -r[G] / r[LENGTH] * cos(r[ANGLE]) * d[ANGLE] + d[TORQUE];
    d[DH] = d[V];
    d[DV] = 0.0;
    d[TIP] = r[LENGTH] * cos(r[ANGLE]) * d[ANGLE];
    for (k = 0; k < nz; k++) dz[k] = d[z[k]];
    return OK;
}

#define COPY(to, from) for (k = 0; k < n; k++) to = from;

#if FMI == 2
Plant *fmi2Instantiate(const char *name, int kind, const char *token, const char *resources,
                       const Callbacks *f, Bool visible, Bool logging) {
    f->release(f->allocate(4, 8));
    return make(token, (void (*)(void))f->logger, f->env);
}
int fmi2SetupExperiment(Plant *p, Bool a, double tol, double t, Bool b, double stop) {
    p->t = t;
    p->next = t + TICK;
    return OK;
}
int fmi2EnterInitializationMode(Plant *p) { return OK; }
int fmi2GetDerivatives(Plant *p, double *x, size_t n) {
    int status;
    compute(p);
    status = misbehave(p);
    memcpy(x, p->r + DANGLE, n * sizeof *x);
    return status;
}
typedef struct { Bool more, end, nominals, states, defined; double next; } EventInfo;
int fmi2NewDiscreteStates(Plant *p, EventInfo *info) {
    update(p);
    info->more = p->i[0] == 3, info->end = 0, info->nominals = 0;
    info->states = p->pending, p->pending = 0;
    info->defined = 1, info->next = p->next;
    return OK;
}
int fmi2GetReal(Plant *p, const unsigned *v, size_t n, double *x) {
    size_t k;
    compute(p);
    COPY(x[k], p->r[v[k]])
    return OK;
}
int fmi2SetReal(Plant *p, const unsigned *v, size_t n, const double *x) {
    size_t k;
    COPY(p->r[v[k]], x[k])
    return OK;
}
int fmi2GetInteger(Plant *p, const unsigned *v, size_t n, int *x) {
    size_t k;
    COPY(x[k], p->i[v[k] - FAULT])
    return OK;
}
int fmi2SetInteger(Plant *p, const unsigned *v, size_t n, const int *x) {
    size_t k;
    COPY(p->i[v[k] - FAULT], x[k])
    return OK;
}
int fmi2GetBoolean(Plant *p, const unsigned *v, size_t n, Bool *x) { *x = p->on; return OK; }
int fmi2SetBoolean(Plant *p, const unsigned *v, size_t n, const Bool *x) { p->on = *x; return OK; }
int fmi2GetString(Plant *p, const unsigned *v, size_t n, const char **x) { *x = p->label; return OK; }
int fmi2SetString(Plant *p, const unsigned *v, size_t n, const char *const *x) {
    snprintf(p->label, sizeof p->label, "%s", *x);
    return OK;
}
int fmi2GetDirectionalDerivative(Plant *p, const unsigned *z, size_t nz, const unsigned *v,
                                 size_t nv, const double *dv, double *dz) {
    return derivative(p, z, nz, v, nv, dv, dz);
}
int fmi2DoStep(Plant *p, double t, double h, Bool no) { return step(p, t, h); }
int fmi2GetRealStatus(Plant *p, int kind, double *x) { *x = p->t; return OK; }
int fmi2GetBooleanStatus(Plant *p, int kind, Bool *x) { *x = 0; return OK; }
#else
Plant *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources,
                                    Bool visible, Bool logging, void *env, Logger log) {
    return make(token, (void (*)(void))log, env);
}
Plant *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources,
                                   Bool visible, Bool logging, Bool events, Bool early,
                                   const unsigned *between, size_t count, void *env, Logger log,
                                   void *update) {
    Plant *p = make(token, (void (*)(void))log, env);
    if (p) p->stops = events && early;
    return p;
}
int fmi3EnterStepMode(Plant *p) { return p->stops ? OK : ERROR; }
int fmi3EnterInitializationMode(Plant *p, Bool a, double tol, double t, Bool b, double stop) {
    p->t = t;
    p->next = t + TICK;
    return OK;
}
int fmi3GetContinuousStateDerivatives(Plant *p, double *x, size_t n) {
    int status;
    compute(p);
    status = misbehave(p);
    memcpy(x, p->r + DANGLE, n * sizeof *x);
    return status;
}
int fmi3GetNumberOfEventIndicators(Plant *p, size_t *n) { *n = 1; return OK; }
int fmi3GetNumberOfContinuousStates(Plant *p, size_t *n) { *n = 4; return OK; }
int fmi3UpdateDiscreteStates(Plant *p, Bool *more, Bool *end, Bool *nominals, Bool *states,
                             Bool *defined, double *next) {
    update(p);
    *more = p->i[0] == 3, *end = 0, *nominals = 0, *states = p->pending, p->pending = 0;
    *defined = 1, *next = p->next;
    return OK;
}
int fmi3GetFloat64(Plant *p, const unsigned *v, size_t n, double *x, size_t m) {
    size_t k;
    compute(p);
    for (k = 0; k < n; k++) {
        if (v[k] == GAIN) memcpy(x, p->gain, sizeof p->gain), x += 3;
        else *x++ = p->r[v[k]];
    }
    return OK;
}
int fmi3SetFloat64(Plant *p, const unsigned *v, size_t n, const double *x, size_t m) {
    size_t k;
    for (k = 0; k < n; k++) {
        if (v[k] == GAIN) memcpy(p->gain, x, sizeof p->gain), x += 3;
        else p->r[v[k]] = *x++;
    }
    return OK;
}
int fmi3GetInt32(Plant *p, const unsigned *v, size_t n, int32_t *x, size_t m) {
    size_t k;
    COPY(x[k], p->i[v[k] - FAULT])
    return OK;
}
int fmi3SetInt32(Plant *p, const unsigned *v, size_t n, const int32_t *x, size_t m) {
    size_t k;
    COPY(p->i[v[k] - FAULT], x[k])
    return OK;
}
int fmi3GetBoolean(Plant *p, const unsigned *v, size_t n, Bool *x, size_t m) { *x = p->on; return OK; }
int fmi3SetBoolean(Plant *p, const unsigned *v, size_t n, const Bool *x, size_t m) {
    p->on = *x;
    return OK;
}
int fmi3GetString(Plant *p, const unsigned *v, size_t n, const char **x, size_t m) {
    *x = p->label;
    return OK;
}
int fmi3SetString(Plant *p, const unsigned *v, size_t n, const char *const *x, size_t m) {
    snprintf(p->label, sizeof p->label, "%s", *x);
    return OK;
}
int fmi3GetDirectionalDerivative(Plant *p, const unsigned *z, size_t nz, const unsigned *v,
                                 size_t nv, const double *dv, size_t ndv, double *dz, size_t ndz) {
    return derivative(p, z, nz, v, nv, dv, dz);
}
int fmi3DoStep(Plant *p, double t, double h, Bool no, Bool *event, Bool *end, Bool *early,
               double *reached) {
    int status = step(p, t, h);
    *event = *early = stopped, *reached = p->t;
    *end = p->i[0] == 5 && t > 0.3;
    return status;
}
#endif
/* Functions that no test calls, but that an importer may look for. */
#define NOT(name) int F(name)(void) { return ERROR; }
#if FMI == 2
NOT(GetFMUstate) NOT(SetFMUstate) NOT(FreeFMUstate) NOT(SerializedFMUstateSize)
NOT(SerializeFMUstate) NOT(DeSerializeFMUstate)
NOT(SetRealInputDerivatives) NOT(GetRealOutputDerivatives) NOT(CancelStep) NOT(GetStatus)
NOT(GetIntegerStatus) NOT(GetStringStatus)
#else
NOT(GetFMUState) NOT(SetFMUState) NOT(FreeFMUState) NOT(SerializedFMUStateSize)
NOT(SerializeFMUState) NOT(DeserializeFMUState)

NOT(GetOutputDerivatives) NOT(ActivateModelPartition) NOT(InstantiateScheduledExecution)
NOT(GetFloat32) NOT(GetInt8) NOT(GetUInt8) NOT(GetInt16) NOT(GetUInt16) NOT(GetUInt32)
NOT(GetInt64) NOT(GetUInt64) NOT(GetBinary) NOT(GetClock) NOT(SetFloat32) NOT(SetInt8)
NOT(SetUInt8) NOT(SetInt16) NOT(SetUInt16) NOT(SetUInt32) NOT(SetInt64) NOT(SetUInt64)
NOT(SetBinary) NOT(SetClock) NOT(GetNumberOfVariableDependencies) NOT(GetVariableDependencies)
NOT(GetAdjointDerivative) NOT(EnterConfigurationMode) NOT(ExitConfigurationMode)
NOT(GetIntervalDecimal) NOT(GetIntervalFraction) NOT(GetShiftDecimal) NOT(GetShiftFraction)
NOT(SetIntervalDecimal) NOT(SetIntervalFraction) NOT(SetShiftDecimal) NOT(SetShiftFraction)
NOT(EvaluateDiscreteStates)
#endif
const char *F(GetVersion)(void) { return FMI == 2 ? "2.0" : "3.0"; }
const char *F(GetTypesPlatform)(void) { return "default"; }
int F(SetDebugLogging)(Plant *p, Bool on, size_t n, const char *const *names) { return OK; }
