/** The goodbye message of docs/mqtt.md: why the agent or the machine stops, and when it is expected back. */
import type { GoingDown } from './departure.ts'

export type Goodbye = {
  readonly reason: 'reboot' | 'power-off' | 'shutdown' | 'agent-restart' | 'agent-upgrade' | 'agent-stopped'
  /** undefined: unknown. */
  readonly expectedBackSeconds?: number
}

/** A job in systemd's queue: `reboot.target` `start`. */
export type SystemJob = { readonly unit: string; readonly type: string }

export type GoodbyeFacts = {
  /** systemd's queue; empty if it could not be read. */
  readonly jobs: readonly SystemJob[]
  /** The machine is shutting down. */
  readonly goingDown: GoingDown | undefined
  /** The agent's package is being replaced. */
  readonly isUpgrading: boolean
  /** How long the machine took, last time, from power on to a connection to the controller. */
  readonly bootMs: number | undefined
}

const ownUnit = 'bramble-agent.service'

const rebootTargets = ['reboot.target', 'kexec.target', 'soft-reboot.target']
const offTargets = ['poweroff.target', 'halt.target']
const rebootActions = ['reboot', 'kexec', 'soft-reboot']
const offActions = ['poweroff', 'halt']

/** Boot time of a small board with a slow card, before it was measured. */
const defaultBootMs = 120_000
/** Time to stop the remaining services, and for the firmware before the kernel's clock starts. */
const aroundBootMs = 60_000
/** Enough to move a board to another place. A node that stays away longer is treated as unreachable. */
const powerOffMs = 10 * 60_000
/** A start on a slow board takes seconds; this includes systemd's restart delay. */
const restartMs = 60_000
const upgradeMs = 3 * 60_000

export function goodbyeFor({ jobs, goingDown, isUpgrading, bootMs = defaultBootMs }: GoodbyeFacts): Goodbye {
  const leftMs = goingDown?.leftMs ?? 0
  const starts = (units: readonly string[]) => jobs.some(({ unit, type }) => type === 'start' && units.includes(unit))
  const isAction = (actions: readonly string[]) => actions.includes(goingDown?.action ?? '')
  const backMs = leftMs + 2 * bootMs + aroundBootMs
  if (starts(rebootTargets)) return back('reboot', backMs)
  if (starts(offTargets)) return back('power-off', leftMs + powerOffMs)
  if (isAction(rebootActions)) return back('reboot', backMs)
  if (isAction(offActions)) return back('power-off', leftMs + powerOffMs)
  // Some versions of systemd report which of the two follows only after the delay lock is released.
  if (goingDown !== undefined) return back('shutdown', Math.max(backMs, leftMs + powerOffMs))
  if (isUpgrading) return back('agent-upgrade', upgradeMs)
  if (jobs.some(({ unit, type }) => unit === ownUnit && type.includes('restart')))
    return back('agent-restart', restartMs)
  return { reason: 'agent-stopped' }
}

function back(reason: Goodbye['reason'], afterMs: number): Goodbye {
  return { reason, expectedBackSeconds: Math.ceil(afterMs / 1000) }
}
