/* The types of callbacks of FMI 3.0 are those of the interface. FMUs in source form leave this header
   to the importer. */
#ifndef ARCHIMEDES_FMI3_FUNCTION_TYPES_H
#define ARCHIMEDES_FMI3_FUNCTION_TYPES_H

#include "fmi3PlatformTypes.h"

#endif
