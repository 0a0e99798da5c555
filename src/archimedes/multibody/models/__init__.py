"""What a robot is: joints, the immutable model, the builder that makes it."""
