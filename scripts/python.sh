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
# An environment that is active may have packages of its own, such as a newer torch.
if [[ -n ${VIRTUAL_ENV:-} && -x $VIRTUAL_ENV/bin/python ]]; then
  module=$(compgen -G "$build/python/mase/_native.*.so" || true)
  suffix=$("$VIRTUAL_ENV/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))' || true)
  if [[ -n $suffix && ($module == *"$suffix" || $module == *.abi3.so) ]]; then
    python=$VIRTUAL_ENV/bin/python
  else
    echo "ch: the Python of $VIRTUAL_ENV cannot load the package, which was built for $python: using that one" >&2
  fi
fi
# Whole paths: a notebook's kernel starts in the notebook's folder.
tree=$(cd "$build/python" && pwd)
export PYTHONPATH=$tree${PYTHONPATH:+:$PYTHONPATH}
case $what in
  python)
    flags=()  # Python's own, as in `ch python -u SCRIPT`
    while [[ ${1:-} == -* ]]; do
      case $1 in
        -c* | -m* | - | -i | -h | -\? | -V* | --*) exec "$python" "${flags[@]}" "$@" ;;
        -W | -X)
          flags+=("$1" "${2:-}")
          shift $(($# > 1 ? 2 : 1))
          ;;
        *)
          flags+=("$1")
          shift
          ;;
      esac
    done
    (($#)) || exec "$python" "${flags[@]}"
    exec "$python" "${flags[@]}" -m mase.script "$@"
    ;;
  notebook)
    # An environment that is active comes first, then the one that `make python` makes.
    export PATH=$PATH:$(cd "$root" && pwd)/build/python/bin
    for kind in lab notebook; do
      jupyter "$kind" --version >/dev/null 2>&1 && exec jupyter "$kind" "$@"
    done
    echo "ch: Jupyter is not installed (apt-get install jupyter-notebook, or make python and" \
      "build/python/bin/pip install jupyterlab)" >&2
    exit 2
    ;;
esac
