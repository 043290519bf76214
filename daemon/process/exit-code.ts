/** The exit codes of the programs, from sysexits.h; systemd does not start again what ends with `usage` or `configuration`. */
export const exitCode = { fine: 0, failed: 1, usage: 64, configuration: 78 } as const
