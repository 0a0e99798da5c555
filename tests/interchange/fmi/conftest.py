"""The plant of ``plant.c`` as FMU files, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interchange.fmi import plant_fmu


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """Shared libraries of the plant by version."""
    folder = tmp_path_factory.mktemp("plant")
    return {version: plant_fmu.compiled(version, folder) for version in ("2.0", "3.0")}


@pytest.fixture(scope="session")
def plants(libraries, tmp_path_factory) -> dict[str, Path]:
    """FMU files of the plant by version."""
    folder = tmp_path_factory.mktemp("fmus")
    return {
        version: plant_fmu.write_archive(
            folder / f"plant-{version}.fmu", plant_fmu.plant_entries(version, library)
        )
        for version, library in libraries.items()
    }


@pytest.fixture(scope="session")
def plant(plants) -> Path:
    return plants["2.0"]
