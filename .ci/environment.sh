# shellcheck shell=bash
# What the parts of CI share: a folder to work in, and virtual environments in it. To be sourced.
#
# ARCHIMEDES_CI_FOLDER names a folder that several parts work in (.ci/run makes one); without it a
# part makes its own and removes it at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Hundreds of processes import the package and the tests: they need not all compile them.
unset PYTHONDONTWRITEBYTECODE
# What is tested is what is installed.
unset PYTHONPATH

if [ -n "${ARCHIMEDES_CI_FOLDER:-}" ]; then
  work="$ARCHIMEDES_CI_FOLDER"
  mkdir -p "$work/kernels"
  # What one part of CI has compiled the next ones need not.
  export ARCHIMEDES_TESTS_CACHE="$work/kernels"
  clean_up() { :; }
else
  work="$(mktemp -d)"
  # One file system: nothing that is mounted below is ever removed.
  clean_up() { rm -rf --one-file-system "$work"; }
fi
trap clean_up EXIT

# missing SENTENCE: end with 3, which .ci/run takes for "skipped", or as a failure if all is required.
missing() {
  echo "$(basename "$0"): $1" >&2
  exit 3
}

# fresh NAME PYTHON: enter a new virtual environment, without wondering whether it worked before.
fresh() {
  rm -rf "${work:?}/$1"
  "$2" -m venv "$work/$1"
  enter "$1"
  pip install -q --upgrade pip
}

enter() {
  # shellcheck disable=SC1090,SC1091
  source "$work/$1/bin/activate"
}

# enter_tests: enter the environment with all that the tests need; make it where there is none.
enter_tests() {
  if [ -e "$work/tests/complete" ]; then
    enter tests
  else
    fresh tests python3
    pip install -q -e ".[test]"
    touch "$work/tests/complete"
  fi
}

# find_python VERSION: print a Python of that version (the newest of pyenv's), or nothing.
find_python() {
  local python
  for python in "python$1" $(compgen -G "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1.*/bin/python" | sort -rV); do
    if "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
}
