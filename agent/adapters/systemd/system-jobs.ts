/** What systemd is about to do, and whether our package is being replaced: for the goodbye. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { SystemJob } from '../../shutdown/goodbye.ts'
import { onSystemBus } from './system-bus.ts'
import { isSystemdHere, systemBusPath, systemdManager } from './systemd-bus.ts'

/** Whoever asks is being stopped. */
const deadlineMs = 1_000

/** None where there is no systemd, or it does not answer in time. */
export async function systemJobs(root: string): Promise<readonly SystemJob[]> {
  if (!isSystemdHere(root)) return []
  try {
    const settings = { socketPath: systemBusPath(root), deadlineMs }
    const [rows] = await onSystemBus(settings, (bus) => bus.call({ ...systemdManager, member: 'ListJobs' }))
    return (Array.isArray(rows) ? (rows as unknown[][]) : []).map(([, unit, type]) => ({
      unit: String(unit),
      type: String(type),
    }))
  } catch {
    return []
  }
}

/** The package's scripts leave this mark while they replace us. */
export function isUpgrading(root: string): boolean {
  return existsSync(join(root, 'run/bramble/agent-upgrade'))
}
