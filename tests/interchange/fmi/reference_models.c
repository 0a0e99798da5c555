/* Models of Modelica's Reference FMUs (github.com/modelica/Reference-FMUs), written from their
   equations and from the text of FMI 2.0 and 3.0. They come in source form: the standard's headers are
   the importer's. Their co-simulation takes Euler steps of STEP, as the published one does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if FMI == 2
#define FMI2_FUNCTION_PREFIX ReferenceModel_ /* which a shared library has not */
#include "fmi2Functions.h"
#define F(name) fmi2##name
typedef fmi2Component Handle;
typedef fmi2Boolean Bool;
typedef int Int;
typedef fmi2Status Status;
enum { OK = fmi2OK, ERROR = fmi2Error };
#define N
#else
#define FMI3_FUNCTION_PREFIX ReferenceModel_
#include "fmi3Functions.h"
#define F(name) fmi3##name
typedef fmi3Instance Handle;
typedef fmi3Boolean Bool;
typedef fmi3Int32 Int;
typedef fmi3Status Status;
enum { OK = fmi3OK, ERROR = fmi3Error };
#define N , size_t values
#endif

typedef struct {
    double r[10]; /* time, states, their derivatives, others */
    Int i[2];
    Bool b[2];
    char text[64], resources[512];
    double next; /* event in time */
    int states_changed;
} Model;

/* ---- the models ---------------------------------------------------------------------------- */

#ifdef Dahlquist
enum { X = 1, NX = 1, NZ = 0, K = 3 };
#define STEP 0.1
static void start(Model *m) { m->r[X] = 1.0, m->r[K] = 1.0; }
static void compute(Model *m) { m->r[2] = -m->r[K] * m->r[X]; }
static void update(Model *m) { (void)m; }
#endif

#ifdef VanDerPol
enum { X = 1, NX = 2, NZ = 0, MU = 5 };
#define STEP 0.01
static void start(Model *m) { m->r[X] = 2.0, m->r[MU] = 1.0; }
static void compute(Model *m)
{
    const double *x = m->r + X;
    m->r[3] = x[1];
    m->r[4] = m->r[MU] * ((1.0 - x[0] * x[0]) * x[1]) - x[0];
}
static void update(Model *m) { (void)m; }
#endif

#ifdef BouncingBall
enum { X = 1, NX = 2, NZ = 1, G = 5, E, V_MIN };
#define STEP 1e-3
static void start(Model *m)
{
    m->r[X] = 1.0, m->r[G] = -9.81, m->r[E] = 0.7, m->r[V_MIN] = 0.1;
}
static void compute(Model *m) { m->r[3] = m->r[2], m->r[4] = m->r[G]; }
static void update(Model *m)
{
    double *h = m->r + X, *v = h + 1;
    if (*h > 0.0 || *v >= 0.0) return;
    *h = 0.0;
    *v *= -m->r[E];
    if (*v < m->r[V_MIN]) *v = m->r[G] = 0.0; /* it rests */
    m->states_changed = 1;
}
#endif

#ifdef Stair
enum { X = 1, NX = 0, NZ = 0 };
#define STEP 0.2
static void start(Model *m) { m->i[0] = 1, m->next = 1.0; }
static void compute(Model *m) { (void)m; }
static void update(Model *m)
{
    if (m->r[0] >= m->next - 1e-9) m->i[0]++, m->next += 1.0;
}
#endif

#ifdef Feedthrough
enum { X = 1, NX = 0, NZ = 0 };
#define STEP 0.1
static void start(Model *m) { strcpy(m->text, "Set me!"); }
static void compute(Model *m)
{
    m->r[3] = m->r[1], m->r[4] = m->r[2], m->i[1] = m->i[0], m->b[1] = m->b[0];
}
static void update(Model *m) { (void)m; }
#endif

#ifdef Resource
enum { X = 1, NX = 0, NZ = 0 };
#define STEP 0.1
static void start(Model *m)
{
    char path[600];
    FILE *file;
    const char *folder = m->resources;
    if (!strncmp(folder, "file:///", 8)) folder += 7; /* FMI 2.0: a URI */
    snprintf(path, sizeof path, "%s/y.txt", folder);
    file = fopen(path, "r");
    m->i[0] = file ? fgetc(file) : -1;
    if (file) fclose(file);
}
static void compute(Model *m) { (void)m; }
static void update(Model *m) { (void)m; }
#endif

/* ---- what FMI asks of each ------------------------------------------------------------------ */

static Model *make(const char *resources)
{
    Model *m = calloc(1, sizeof *m);
    snprintf(m->resources, sizeof m->resources, "%s", resources ? resources : "");
    m->next = HUGE_VAL;
    start(m);
    return m;
}

static void step(Model *m, double t, double h)
{
    const long n = lround(h / STEP);
    long k;
    int j;
    for (k = 0; k < n; k++) {
        compute(m);
        for (j = 0; j < NX; j++) m->r[X + j] += STEP * m->r[X + NX + j];
        m->r[0] = t + (double)(k + 1) * STEP;
        update(m);
    }
    m->r[0] = t + h;
}

#define M ((Model *)c)
#define EACH for (size_t k = 0; k < n; k++)
Status F(SetTime)(Handle c, double t) { M->r[0] = t; return OK; }
Status F(SetContinuousStates)(Handle c, const double x[], size_t n) { EACH M->r[X + k] = x[k]; return OK; }
Status F(GetContinuousStates)(Handle c, double x[], size_t n) { EACH x[k] = M->r[X + k]; return OK; }
Status F(GetNominalsOfContinuousStates)(Handle c, double x[], size_t n) { (void)c; EACH x[k] = 1.0; return OK; }
Status F(GetEventIndicators)(Handle c, double z[], size_t n)
{
    EACH z[k] = M->r[X] == 0.0 && M->r[X + 1] >= 0.0 ? 1e-12 : M->r[X];
    return OK;
}
Status F(EnterEventMode)(Handle c) { (void)c; return OK; }
Status F(EnterContinuousTimeMode)(Handle c) { (void)c; return OK; }
Status F(ExitInitializationMode)(Handle c) { (void)c; return OK; }
Status F(Terminate)(Handle c) { (void)c; return OK; }
void F(FreeInstance)(Handle c) { free(c); }
Status F(CompletedIntegratorStep)(Handle c, Bool no, Bool *event, Bool *end)
{
    (void)c, (void)no;
    *event = *end = 0;
    return OK;
}
Status F(GetBoolean)(Handle c, const unsigned v[], size_t n, Bool x[] N) { compute(M); EACH x[k] = M->b[v[k] - 30]; return OK; }
Status F(SetBoolean)(Handle c, const unsigned v[], size_t n, const Bool x[] N) { EACH M->b[v[k] - 30] = x[k]; return OK; }
Status F(GetString)(Handle c, const unsigned v[], size_t n, const char *x[] N) { (void)v; EACH x[k] = M->text; return OK; }
Status F(SetString)(Handle c, const unsigned v[], size_t n, const char *const x[] N)
{
    (void)v;
    EACH snprintf(M->text, sizeof M->text, "%s", x[k]);
    return OK;
}
#if FMI == 2
#define GET_REAL fmi2GetReal
#define SET_REAL fmi2SetReal
#define GET_INT fmi2GetInteger
#define SET_INT fmi2SetInteger
#define DERIVATIVES fmi2GetDerivatives
#else
#define GET_REAL fmi3GetFloat64
#define SET_REAL fmi3SetFloat64
#define GET_INT fmi3GetInt32
#define SET_INT fmi3SetInt32
#define DERIVATIVES fmi3GetContinuousStateDerivatives
#endif
Status GET_REAL(Handle c, const unsigned v[], size_t n, double x[] N) { compute(M); EACH x[k] = M->r[v[k]]; return OK; }
Status SET_REAL(Handle c, const unsigned v[], size_t n, const double x[] N) { EACH M->r[v[k]] = x[k]; return OK; }
Status GET_INT(Handle c, const unsigned v[], size_t n, Int x[] N) { compute(M); EACH x[k] = M->i[v[k] - 20]; return OK; }
Status SET_INT(Handle c, const unsigned v[], size_t n, const Int x[] N) { EACH M->i[v[k] - 20] = x[k]; return OK; }
Status DERIVATIVES(Handle c, double x[], size_t n) { compute(M); EACH x[k] = M->r[X + NX + k]; return OK; }

#if FMI == 2
fmi2Component fmi2Instantiate(fmi2String name, fmi2Type kind, fmi2String token, fmi2String resources,
                              const fmi2CallbackFunctions *f, fmi2Boolean visible, fmi2Boolean log)
{
    (void)name, (void)kind, (void)token, (void)f, (void)visible, (void)log;
    return make(resources);
}
fmi2Status fmi2SetupExperiment(Handle c, Bool a, double tol, double t, Bool b, double stop)
{
    (void)a, (void)tol, (void)b, (void)stop;
    M->r[0] = t;
    return OK;
}
fmi2Status fmi2EnterInitializationMode(Handle c) { (void)c; return OK; }
fmi2Status fmi2NewDiscreteStates(Handle c, fmi2EventInfo *info)
{
    memset(info, 0, sizeof *info);
    update(M);
    info->valuesOfContinuousStatesChanged = M->states_changed;
    info->nextEventTimeDefined = M->next < HUGE_VAL, info->nextEventTime = M->next;
    M->states_changed = 0;
    return OK;
}
fmi2Status fmi2DoStep(Handle c, double t, double h, Bool no) { (void)no; step(M, t, h); return OK; }
fmi2Status fmi2GetRealStatus(Handle c, const fmi2StatusKind kind, double *x) { (void)kind; *x = M->r[0]; return OK; }
fmi2Status fmi2GetBooleanStatus(Handle c, const fmi2StatusKind kind, Bool *x) { (void)c, (void)kind; *x = 0; return OK; }
#else
fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources,
                                          bool visible, bool logging, fmi3InstanceEnvironment env,
                                          fmi3LogMessageCallback log)
{
    (void)name, (void)token, (void)visible, (void)logging, (void)env, (void)log;
    return make(resources);
}
fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources,
                                         bool visible, bool logging, bool events, bool early,
                                         const fmi3ValueReference v[], size_t n,
                                         fmi3InstanceEnvironment env, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback between)
{
    (void)name, (void)token, (void)visible, (void)logging, (void)events, (void)early, (void)v;
    (void)n, (void)env, (void)log, (void)between;
    return make(resources);
}
fmi3Status fmi3EnterInitializationMode(Handle c, bool a, double tol, double t, bool b, double stop)
{
    (void)a, (void)tol, (void)b, (void)stop;
    M->r[0] = t;
    return OK;
}
fmi3Status fmi3UpdateDiscreteStates(Handle c, bool *more, bool *end, bool *nominals, bool *states,
                                    bool *defined, double *next)
{
    update(M);
    *more = *end = *nominals = false, *states = M->states_changed, M->states_changed = 0;
    *defined = M->next < HUGE_VAL, *next = M->next;
    return OK;
}
fmi3Status fmi3GetNumberOfEventIndicators(Handle c, size_t *n) { (void)c; *n = NZ; return OK; }
fmi3Status fmi3GetNumberOfContinuousStates(Handle c, size_t *n) { (void)c; *n = NX; return OK; }
fmi3Status fmi3DoStep(Handle c, double t, double h, bool no, bool *event, bool *end, bool *early,
                      double *reached)
{
    (void)no;
    step(M, t, h);
    *event = *end = *early = false, *reached = t + h;
    return OK;
}
#endif
