"""Small programs as recorded code: quadratic and sequential quadratic programming."""
