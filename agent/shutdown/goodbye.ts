/** Why do we go, and when are we back? In the words of the goodbye. */
import type { GoingDown } from './departure.ts'

export type Goodbye = {
  readonly reason: 'reboot' | 'power-off' | 'shutdown' | 'agent-restart' | 'agent-upgrade' | 'agent-stopped'
  /** Left out: nobody knows. */
  readonly expectedBackSeconds?: number
}

/** A job systemd has to do: `reboot.target` `start`. */
export type SystemJob = { readonly unit: string; readonly type: string }

export type GoodbyeFacts = {
  /** What systemd is about; none when it could not be asked. */
  readonly jobs: readonly SystemJob[]
  /** The machine goes down. */
  readonly goingDown: GoingDown | undefined
  /** Our package is being replaced. */
  readonly isUpgrading: boolean
  /** How long the machine took, last time, from power on to a connection to the controller. */
  readonly bootMs: number | undefined
}

const ownUnit = 'bramble-agent.service'

const rebootTargets = ['reboot.target', 'kexec.target', 'soft-reboot.target']
const offTargets = ['poweroff.target', 'halt.target']
const rebootActions = ['reboot', 'kexec', 'soft-reboot']
const offActions = ['poweroff', 'halt']

/** A small board with a slow card, before it was measured. */
const defaultBootMs = 120_000
/** To stop what is left, and for the firmware before the kernel's clock starts. */
const aroundBootMs = 60_000
/** Somebody moves it to another shelf. Who is longer off is missed as any other. */
const powerOffMs = 10 * 60_000
/** A start on a slow board takes seconds; with systemd's back-off in it. */
const restartMs = 60_000
const upgradeMs = 3 * 60_000

export function goodbyeFor({ jobs, goingDown, isUpgrading, bootMs = defaultBootMs }: GoodbyeFacts): Goodbye {
  const leftMs = goingDown?.leftMs ?? 0
  const starts = (units: readonly string[]) => jobs.some(({ unit, type }) => type === 'start' && units.includes(unit))
  const says = (actions: readonly string[]) => actions.includes(goingDown?.action ?? '')
  const backMs = leftMs + 2 * bootMs + aroundBootMs
  if (starts(rebootTargets)) return back('reboot', backMs)
  if (starts(offTargets)) return back('power-off', leftMs + powerOffMs)
  if (says(rebootActions)) return back('reboot', backMs)
  if (says(offActions)) return back('power-off', leftMs + powerOffMs)
  // Which of both it will be, some systemds say only when our lock is gone.
  if (goingDown !== undefined) return back('shutdown', Math.max(backMs, leftMs + powerOffMs))
  if (isUpgrading) return back('agent-upgrade', upgradeMs)
  if (jobs.some(({ unit, type }) => unit === ownUnit && type.includes('restart')))
    return back('agent-restart', restartMs)
  return { reason: 'agent-stopped' }
}

function back(reason: Goodbye['reason'], afterMs: number): Goodbye {
  return { reason, expectedBackSeconds: Math.ceil(afterMs / 1000) }
}
