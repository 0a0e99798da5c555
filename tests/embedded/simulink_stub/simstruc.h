/* A stand-in for Simulink's simstruc.h: what a level-2 S-function calls, as documented, and the
 * order in which Simulink calls it. Written for these tests. */
#ifndef SIMSTRUC_STUB
#define SIMSTRUC_STUB
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double real_T;
typedef float real32_T;
typedef int32_t int32_T;
typedef unsigned char boolean_T;
typedef int int_T;
enum { SS_DOUBLE, SS_SINGLE, SS_INT32 = 6, SS_BOOLEAN = 8 };
enum { SS_PRM_NOT_TUNABLE, SS_PRM_TUNABLE };
enum { DISALLOW_OPERATING_POINT = 7, SS_OPTION_EXCEPTION_FREE_CODE = 1 };
#define INHERITED_SAMPLE_TIME (-1.0)

typedef struct { double *data; size_t count; } mxArray;
typedef struct {
    int ndim, dims[2], type, feedthrough, contiguous;
    void *signal;
} port_t;
typedef struct {
    int expected, given, inputs, outputs, tunable[64], operating_point, pwork;
    mxArray parameters[64];
    port_t in[64], out[64];
    double step, offset;
    const char *error;
    void *work;
} SimStruct;

static int mxIsDouble(const mxArray *a) { return a->data != NULL; }
static int mxIsComplex(const mxArray *a) { (void)a; return 0; }
static int mxIsSparse(const mxArray *a) { (void)a; return 0; }
static size_t mxGetNumberOfElements(const mxArray *a) { return a->count; }
static double *mxGetPr(const mxArray *a) { return a->data; }

#define ssSetNumSFcnParams(S, n) ((S)->expected = (n))
#define ssGetNumSFcnParams(S) ((S)->expected)
#define ssGetSFcnParamsCount(S) ((S)->given)
#define ssGetSFcnParam(S, k) (&(S)->parameters[k])
#define ssSetSFcnParamTunable(S, k, t) ((S)->tunable[k] = (t))
#define ssSetErrorStatus(S, text) ((S)->error = (text))
#define ssGetErrorStatus(S) ((S)->error)
#define ssSetNumContStates(S, n) ((void)(S))
#define ssSetNumDiscStates(S, n) ((void)(S))
#define ssSetNumInputPorts(S, n) ((S)->inputs = (n), 1)
#define ssSetNumOutputPorts(S, n) ((S)->outputs = (n), 1)
static int set_dims(port_t *p, int ndim, int r, int c)
{
    p->ndim = ndim;
    p->dims[0] = r;
    p->dims[1] = c;
    return r > 0 && c > 0;
}
#define ssSetInputPortVectorDimension(S, k, n) set_dims(&(S)->in[k], 1, n, 1)
#define ssSetOutputPortVectorDimension(S, k, n) set_dims(&(S)->out[k], 1, n, 1)
#define ssSetInputPortMatrixDimensions(S, k, r, c) set_dims(&(S)->in[k], 2, r, c)
#define ssSetOutputPortMatrixDimensions(S, k, r, c) set_dims(&(S)->out[k], 2, r, c)
#define ssSetInputPortDataType(S, k, t) ((S)->in[k].type = (t))
#define ssSetOutputPortDataType(S, k, t) ((S)->out[k].type = (t))
#define ssSetInputPortDirectFeedThrough(S, k, f) ((S)->in[k].feedthrough = (f))
#define ssSetInputPortRequiredContiguous(S, k, f) ((S)->in[k].contiguous = (f))
#define ssGetInputPortSignal(S, k) ((const void *)(S)->in[k].signal)
#define ssGetOutputPortSignal(S, k) ((S)->out[k].signal)
#define ssSetNumSampleTimes(S, n) ((void)(S))
#define ssSetSampleTime(S, k, t) ((S)->step = (t))
#define ssSetOffsetTime(S, k, t) ((S)->offset = (t))
#define ssSetModelReferenceSampleTimeDefaultInheritance(S) ((void)(S))
#define ssSetNumPWork(S, n) ((S)->pwork = (n))
#define ssSetPWorkValue(S, k, p) ((S)->work = (p))
#define ssGetPWorkValue(S, k) ((S)->work)
#define ssSetOperatingPointCompliance(S, c) ((S)->operating_point = (c))
#define ssSetOptions(S, o) ((void)(S))
#endif
