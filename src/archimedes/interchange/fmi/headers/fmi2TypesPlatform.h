/* The types of FMI 2.0 (specification, 2.1.2). FMUs in source form leave this header to the importer. */
#ifndef ARCHIMEDES_FMI2_TYPES_PLATFORM_H
#define ARCHIMEDES_FMI2_TYPES_PLATFORM_H

#include "fmi2_interface.h"

#define fmi2TypesPlatform "default"

#endif
