"""MuJoCo as a peer, whose warnings come here: it would write them to a file where the tests run."""

from __future__ import annotations

from tests.optional_packages import import_or_skip

mujoco = import_or_skip("mujoco")

#: What MuJoCo has warned of; without a handler it goes to MUJOCO_LOG.TXT in the current directory.
MESSAGES: list[str] = []
mujoco.set_mju_user_warning(MESSAGES.append)
