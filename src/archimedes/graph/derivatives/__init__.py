"""Derivatives of graphs: rules of ops and regions, sweeps, sparsity, colouring, Jacobians."""
