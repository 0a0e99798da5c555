from archimedes.interchange.logs.reading import log_topics as log_topics
from archimedes.interchange.logs.reading import read_log as read_log
from archimedes.interchange.logs.topics import Topic as Topic
from archimedes.interchange.logs.topics import Topics as Topics
from archimedes.interchange.onnx.network import Network as Network
from archimedes.interchange.onnx.network import from_onnx as from_onnx
from archimedes.interchange.onnx.tensors import OnnxError as OnnxError
