# shellcheck shell=bash disable=SC2034
# Sourced by our scripts that are not tests: how they speak, install what is missing and start programs, and where tools and logs lie.

# shellcheck source=scripts/support/print.sh
. scripts/support/print.sh
# shellcheck source=scripts/support/packages.sh
. scripts/support/packages.sh
# shellcheck source=scripts/support/processes.sh
. scripts/support/processes.sh

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mkdir -p dist
tools=$PWD/dist/tools
install_log=$PWD/dist/$(basename -- "$0" .sh).log
