"""What a robot is made of: joints, actuators, tendons, closures, shapes."""
