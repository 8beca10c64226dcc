# SPDX-License-Identifier: Apache-2.0
# ch python [SCRIPT ARGS], ch notebook [ARGS]: sourced by the launcher, which says where it is ($root,
# $build) and what was typed. The package is built when its sources changed.
what=$1
shift
built=$build/.python-built
if [[ ! -e $built || -n $(find "$root/python" "$root/src" "$root/cmake" -newer "$built" -print -quit) ]]; then
  "$root/scripts/install_packages.sh" python || exit $?
  "$root/scripts/python_tools.sh" --needed || exit $?
  "$root/scripts/build.sh" --packages build --build-dir "$build" --stamp "$built" -DMASE_PYTHON=ON \
    mase_python || exit $?
fi
python=/usr/bin/python3
export PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH}
case $what in
  python)
    (($#)) || exec "$python"
    exec "$python" -m mase.script "$@"
    ;;
  notebook)
    for kind in lab notebook; do
      jupyter "$kind" --version >/dev/null 2>&1 && exec jupyter "$kind" "$@"
    done
    echo "ch: Jupyter is not installed (apt-get install jupyter-notebook, or pip install jupyterlab)" >&2
    exit 2
    ;;
esac
