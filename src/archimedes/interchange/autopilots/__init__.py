"""Software in the loop: our vehicle and sensors, the autopilot of somebody else.

`links` moves bytes over the loopback, `px4` and `ardupilot` speak the protocols, `plant` is the
vehicle with its sensors as compiled steps, `commands` turns channels into inputs of the vehicle,
and `software_in_the_loop` runs the loop.
"""
