"""Long tests: left out by default, run with ``pytest -m long`` (see pyproject.toml)."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import pytest

__all__ = ["LONG", "is_long", "long_after", "long_but"]

#: Tests that take seconds and repeat what a quicker neighbour shows: patterns of their names, in
#: which [ and ] are plain characters.
LONG = (
    "tests/backends/test_every_program.py::test_llvm_in_parts*",
    "tests/blocks/test_forms_as_loops.py::*",
    "tests/blocks/test_wide_arrays.py::test_gradients*[*e*",
    "tests/blocks/test_wide_arrays.py::test_hessians",
    "tests/c/test_cleanliness.py::test_cppcheck*",
    "tests/c/test_cleanliness.py::test_sanitizers*[double-gcc]",
    "tests/c/test_programs.py::test_fuzz_programs[double--O2-clang]",
    "tests/c/test_programs.py::test_fuzz_programs[float*",
    "tests/c/test_regions.py::test_regions[float*",
    "tests/c/test_rendering.py::test_the_same_bytes_in_every_process",
    "tests/c/test_spatial.py::test_spatial_functions[double--O2-clang]",
    "tests/c/test_spatial.py::test_spatial_functions[float*",
    "tests/control/test_frequency.py::test_reg*",
    "tests/control/test_frequency.py::test_reduction*[0.1]",
    "tests/control/test_frequency.py::test_responses_against*",
    "tests/control/test_linear_mpc.py::test_limits_hold*",
    "tests/control/test_linear_mpc.py::test_limits_that*",
    "tests/control/test_linear_mpc.py::test_plans*[changes]",
    "tests/control/test_linear_mpc.py::test_the_same_bits*",
    "tests/control/test_nonlinear_mpc.py::test_control*",
    "tests/control/test_nonlinear_mpc.py::test_iterations*",
    "tests/control/test_nonlinear_mpc.py::test_the_same_bits*",
    "tests/control/test_schedules_and_allocation.py::test_the_same_bits*[allocator]",
    "tests/cuda/test_nvrtc.py::test_every_op*",
    "tests/cuda/test_nvrtc.py::test_every_region*",
    "tests/derivatives/test_hessians_at_equal_values.py::test_five_by_five*",
    "tests/derivatives/test_hessians_at_equal_values.py::test_functions_of_singular*4 by 4]",
    "tests/derivatives/test_second.py::test_forward_over_reverse[expm*",
    "tests/derivatives/test_second.py::test_hess[expm*",
    "tests/derivatives/test_second.py::test_reverse_over_reverse*",
    "tests/elementary/test_special_functions.py::test_same_bits[llvm-float32]",
    "tests/function/test_recordings.py::test_native_code_goes_with_its_function",
    "tests/function/test_threads.py::test_different_functions_of_each_other",
    "tests/function/test_threads.py::test_the_same_function[numbers-interpreter]",
    "tests/fuzz/test_fuzz.py::test_compiled_programs_equal_numpy[1]",
    "tests/fuzz/test_fuzz.py::test_compiled_programs_equal_numpy[2]",
    "tests/fuzz/test_fuzz.py::test_programs_as_loops*",
    "tests/fuzz/test_fuzz.py::test_programs_compiled_by_themselves*",
    "tests/fuzz/test_fuzz.py::test_scalar_lanes_and_threads_*[???*]",
    "tests/fuzz/test_fuzz.py::test_so_they_do_in_fast_numerics*",
    "tests/linalg/test_spectral.py::*full_size*",
    "tests/llvm/test_batches.py::test_frames_too_large*",
    "tests/llvm/test_environment.py::test_rows_of_a_batch_are_alike_in_all_threads[1*",
    "tests/llvm/test_environment.py::test_rows_of_a_batch_are_alike_in_all_threads[2*",
    "tests/llvm/test_environment.py::test_rows_of_a_batch_are_alike_in_all_threads[3*",
    "tests/llvm/test_environment.py::test_rows_of_a_batch_are_alike_in_all_threads[4*",
    "tests/llvm/test_environment.py::test_rows_of_a_batch_are_alike_in_all_threads[5*",
    "tests/llvm/test_fuzz.py::*[1]",
    "tests/multibody/test_base_parameters.py::test_they_give*",
    "tests/multibody/test_contact.py::test_a_block_slides*[0.01]",
    "tests/multibody/test_contact.py::test_energy_never_grows*",
    "tests/multibody/test_contact_gradients.py::test_a_step*",
    "tests/multibody/test_contact_gradients.py::test_gradients_of_a_bounce_as_an_event",
    "tests/multibody/test_contact_gradients.py::test_gradients_through_a_bounce[0.0]",
    "tests/multibody/test_contact_gradients.py::test_the_same_backwards",
    "tests/multibody/test_contact_pairs.py::test_a_cradle_swings",
    "tests/multibody/test_contact_pairs.py::test_newtons_cradle[3]",
    "tests/multibody/test_contact_pairs.py::test_stacked*",
    "tests/multibody/test_identities.py::test_identities_with_joints_of_your_own",
    "tests/multibody/test_shape_inertias.py::test_closed_forms*",
    "tests/multibody/test_own_derivatives.py::test_jac_takes_less_work*",
    "tests/multibody/test_own_derivatives.py::test_second*",
    "tests/multibody/test_own_derivatives.py::test_singular_configurations[floating]",
    "tests/observers/test_attitudes.py::test_as_c",
    "tests/observers/test_attitudes.py::test_smoothed*",
    "tests/observers/test_attitudes.py::test_the_attitude_filter_is_consistent[True]",
    "tests/observers/test_attitudes.py::test_the_unscented*",
    "tests/observers/test_attitudes.py::test_trees*[True*",
    "tests/observers/test_square_root.py::test_compiled*[pendulum*",
    "tests/observers/test_square_root.py::test_derivatives_and_c",
    "tests/optimize/test_maps.py::test_maps_give*",
    "tests/optimize/test_minimize.py::test_one_result_whatever_the_solver[COBYQA]",
    "tests/optimize/test_minimize.py::test_one_result_whatever_the_solver[trust*",
    "tests/optimize/test_minimize.py::test_without_constraints[BFGS]",
    "tests/optimize/test_minimize.py::test_without_constraints[C*",
    "tests/optimize/test_minimize.py::test_without_constraints[N*",
    "tests/optimize/test_minimize.py::test_without_constraints[T*",
    "tests/optimize/test_minimize.py::test_without_constraints[t*",
    "tests/optimize/test_nlp_solver.py::test_derivatives_in_parameters*[interior]",
    "tests/optimize/test_optimal_control.py::test_brachistochrone",
    "tests/optimize/test_optimal_control.py::test_goddard*",
    "tests/optimize/test_phases.py::test_goddard*",
    "tests/optimize/test_interior_point.py::test_the_optimum_of_ipopt*[radau3]",
    "tests/optimize/test_interior_point.py::test_the_optimum_of_ipopt*[mult*",
    "tests/optimize/test_optimal_control.py::test_minimum_effort*[radau*",
    "tests/optimize/test_optimal_control.py::test_minimum_time_is_two_seconds[multiple*",
    "tests/optimize/test_optimal_control.py::test_minimum_time_is_two_seconds[radau*",
    "tests/optimize/test_optimal_control.py::test_minimum_time_is_two_seconds[trapez*",
    "tests/optimize/test_optimal_control.py::test_path_and_boundary*",
    "tests/optimize/test_optimal_control.py::test_van_der_pol[True*",
    "tests/optimize/test_quadratic.py::test_against_another_solver",
    "tests/optimize/test_quadratic.py::test_as_c",
    "tests/optimize/test_quadratic.py::test_conditions_of_a_minimum_on_random_programs[18*",
    "tests/optimize/test_quadratic.py::test_conditions_of_a_minimum_on_random_programs[5*",
    "tests/optimize/test_quadratic.py::test_derivatives_against_differences",
    "tests/optimize/test_quadratic.py::test_resumed*",
    "tests/optimize/test_sequential_quadratic.py::test_as_c",
    "tests/optimize/test_sequential_quadratic.py::test_derivatives*",
    "tests/optimize/test_sequential_quadratic.py::test_inverse*",
    "tests/quality/test_examples.py::test_example[02*",
    "tests/quality/test_examples.py::test_example[03*",
    "tests/quality/test_examples.py::test_example[05*",
    "tests/quality/test_examples.py::test_example[06*",
    "tests/quality/test_examples.py::test_example[07*",
    "tests/quality/test_examples.py::test_example[08*",
    "tests/quality/test_examples.py::test_example[10*",
    "tests/quality/test_examples.py::test_example[11*",
    "tests/quality/test_examples.py::test_example[12*",
    "tests/quality/test_pages.py::test_blocks_run[archimedes]",
    "tests/quality/test_pages.py::test_blocks_run[casadi]",
    "tests/quality/test_pages.py::test_blocks_run[f16_autopilot]",
    "tests/quality/test_pages.py::test_blocks_run[filter_to_cortex_m]",
    "tests/quality/test_pages.py::test_blocks_run[getting_started]",
    "tests/quality/test_pages.py::test_blocks_run[jax]",
    "tests/quality/test_pages.py::test_blocks_run[matlab]",
    "tests/quality/test_pages.py::test_blocks_run[noise_and_campaigns]",
    "tests/quality/test_pages.py::test_blocks_run[numpy_scipy]",
    "tests/quality/test_pages.py::test_blocks_run[optimal_landing]",
    "tests/quality/test_pages.py::test_blocks_run[pendulum_to_flight_computer]",
    "tests/quality/test_pages.py::test_blocks_run[robot_arm]",
    "tests/quality/test_pages.py::test_blocks_run[six_degrees_of_freedom]",
    "tests/quality/test_explanations.py::test_forty*",
    "tests/quality/test_site.py::test_it_builds*",
    "tests/quality/test_typing.py::test_what_a_type_checker_sees",
    "tests/simulate/test_campaigns.py::test_killed_and_resumed[rename*",
    "tests/simulate/test_large_models.py::test_brusselator*[auto]",
    "tests/simulate/test_large_models.py::test_brusselator*[esdirk4]",
    "tests/simulate/test_large_models.py::test_steps_in_python*[few outputs]",
    "tests/simulate/test_large_models.py::test_steps_in_python*[many outputs]",
    "tests/simulate/test_large_models.py::test_stiff_methods_agree*[auto]",
    "tests/simulate/test_large_models.py::test_stiff_methods_agree*[esdirk4]",
    "tests/simulate/test_odeint.py::test_adjoint_equals_forward",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[a bounce by*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[an event that ends*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[both ends by *",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[dynamics that switch*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[outputs before*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[the end of the span is*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[time of landing*",
    "tests/simulate/test_solve_derivatives.py::test_orders_forward[two events*",
    "tests/simulate/test_solve_derivatives.py::test_second_order_through_reverse*",
    "tests/simulate/test_stiff.py::test_van_der_pol*",
    "tests/simulate/test_stiffness.py::test_auto_in_batches*",
    "tests/sysid/test_fits.py::test_bounds*",
    "tests/sysid/test_fits.py::test_discrete*",
    "tests/sysid/test_fits.py::test_figures",
    "tests/sysid/test_fits.py::test_inputs*",
    "tests/sysid/test_fits.py::test_known*",
    "tests/sysid/test_fits.py::test_multiple*",
    "tests/sysid/test_fits.py::test_residuals_of_a_wrong*",
    "tests/sysid/test_fits.py::test_what_data*",
    "tests/sysid/test_fits.py::test_without*",
    "tests/vehicles/test_autopilot.py::*pole*",
    "tests/vehicles/test_rocket.py::test_the_rocket_equation",
    "tests/vehicles/test_rocket.py::test_two_stages_to_orbit",
)


def is_long(name: str) -> bool:
    """Whether a test of this name is listed as long."""
    # fnmatch takes [ as the start of a set of characters.
    plain = name.replace("[", "<").replace("]", ">")
    return any(fnmatchcase(plain, pattern.replace("[", "<").replace("]", ">")) for pattern in LONG)


def long_after(quick: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only the first `quick` are tried by default."""
    return [v if k < quick else _long(v) for k, v in enumerate(values)]


def long_but(quick: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only those in `quick` are tried by default."""
    kept = list(quick)
    return [v if v in kept else _long(v) for v in values]


def _long(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.long)
