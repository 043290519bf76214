/** What systemd is about to do, and whether our package is being replaced: for the goodbye. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { SystemJob } from '../shutdown/goodbye.ts'
import { callOnce, systemBusSocket } from './system-bus.ts'

const systemd = { destination: 'org.freedesktop.systemd1', path: '/org/freedesktop/systemd1' }
const listJobs = { ...systemd, interface: 'org.freedesktop.systemd1.Manager', member: 'ListJobs' }

/** Whoever asks is being stopped. */
const deadlineMs = 1_000

/** None where there is no systemd, or it does not answer in time. */
export async function systemJobs(root: string): Promise<readonly SystemJob[]> {
  const socketPath = join(root, systemBusSocket)
  if (!existsSync(socketPath)) return []
  try {
    const [rows] = await callOnce({ socketPath, deadlineMs }, listJobs)
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
