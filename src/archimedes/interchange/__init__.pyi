from archimedes.interchange import environments as environments
from archimedes.interchange.autopilots.commands import RotorCommands as RotorCommands
from archimedes.interchange.autopilots.commands import SurfaceCommands as SurfaceCommands
from archimedes.interchange.autopilots.plant import Readings as Readings
from archimedes.interchange.autopilots.software_in_the_loop import (
    SoftwareInTheLoop as SoftwareInTheLoop,
)
from archimedes.interchange.fmi.export_fmu import Fmu as Fmu
from archimedes.interchange.fmi.export_fmu import export_fmu as export_fmu
from archimedes.interchange.fmi.import_fmu import FmuError as FmuError
from archimedes.interchange.fmi.import_fmu import ImportedFmu as ImportedFmu
from archimedes.interchange.fmi.import_fmu import import_fmu as import_fmu
from archimedes.interchange.jax_functions import to_jax as to_jax
from archimedes.interchange.logs.reading import log_topics as log_topics
from archimedes.interchange.logs.reading import read_log as read_log
from archimedes.interchange.logs.topics import Topic as Topic
from archimedes.interchange.logs.topics import Topics as Topics
from archimedes.interchange.onnx.network import Network as Network
from archimedes.interchange.onnx.network import from_onnx as from_onnx
from archimedes.interchange.onnx.tensors import OnnxError as OnnxError
from archimedes.interchange.torch_functions import to_torch as to_torch
