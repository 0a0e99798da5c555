from archimedes.interchange.jax_functions import to_jax as to_jax
from archimedes.interchange.logs.reading import log_topics as log_topics
from archimedes.interchange.logs.reading import read_log as read_log
from archimedes.interchange.logs.topics import Topic as Topic
from archimedes.interchange.logs.topics import Topics as Topics
from archimedes.interchange.torch_functions import to_torch as to_torch
