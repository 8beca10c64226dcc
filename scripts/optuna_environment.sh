#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Optuna from PyPI in an environment of its own (build/venv), for the tests that share studies with it.
# Without a mirror that has it these tests are skipped, and say so.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv
"$venv/bin/python" -c "import optuna" 2>/dev/null && exit 0
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check optuna optuna-dashboard psycopg2-binary ||
  "$venv/bin/pip" install --quiet --disable-pip-version-check optuna
