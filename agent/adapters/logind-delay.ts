/** How long logind waits for delay locks: asked for by a drop-in, applied without a restart, and read back. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { replaceFile } from '../../daemon/durable-file.ts'
import type { SystemBus } from './system-bus.ts'

/** Of all drop-ins the one whose name sorts last wins: letters after digits, so `99-…` does not beat unattended-upgrades'. */
const ownName = 'zzz-bramble.conf'
export const ownDropIn = `etc/systemd/logind.conf.d/${ownName}`

/** The first of one name hides the others. */
const folders = ['etc', 'run', 'usr/local/lib', 'usr/lib'].map((folder) => `${folder}/systemd/logind.conf.d`)

export type DelayNeeds = {
  readonly root: string
  readonly bus: Pick<SystemBus, 'call'>
  readonly delayMs: () => Promise<number>
}

/** logind reads its files anew a moment after the signal. */
const appliedMs = 2_000
const hangup = 1

export function logindDelay({ root, bus, delayMs }: DelayNeeds) {
  const path = join(root, ownDropIn)
  /** What was asked for in vain is not asked for again. */
  let refused: number | undefined

  const apply = async (isSo: (ms: number) => boolean) => {
    const systemd = { destination: 'org.freedesktop.systemd1', path: '/org/freedesktop/systemd1' }
    const body = ['systemd-logind.service', 'main', hangup]
    const call = {
      ...systemd,
      interface: 'org.freedesktop.systemd1.Manager',
      member: 'KillUnit',
      signature: 'ssi',
      body,
    }
    await bus.call(call)
    const untilMs = performance.now() + appliedMs
    let grantedMs = await delayMs()
    while (!isSo(grantedMs) && performance.now() < untilMs) {
      await pause(50)
      grantedMs = await delayMs()
    }
    return grantedMs
  }

  return {
    async ask(wantedMs: number | undefined) {
      const before = await delayMs()
      const own = await readFile(path, 'utf8').catch(() => undefined)
      if (wantedMs === undefined) {
        if (own === undefined) return { grantedMs: before, by: undefined }
        await rm(path, { force: true })
        return { grantedMs: await apply((ms) => ms !== before), by: undefined }
      }
      const text = dropIn(wantedMs)
      if (before >= wantedMs && (own === undefined || own === text)) return { grantedMs: before, by: undefined }
      if (own === text && refused === wantedMs) return { grantedMs: before, by: await lastWord(root) }
      await mkdir(dirname(path), { recursive: true })
      if (own !== text) await replaceFile(path, text, 0o644)
      const grantedMs = await apply((ms) => ms >= wantedMs)
      refused = grantedMs < wantedMs ? wantedMs : undefined
      return { grantedMs, by: refused === undefined ? undefined : await lastWord(root) }
    },
  }
}

function dropIn(ms: number): string {
  return [
    '# Written by bramble-agent, for shutdownGracePeriod in its configuration; rewritten at its start.',
    '[Login]',
    `InhibitDelayMaxSec=${Math.ceil(ms / 1000)}`,
    '',
  ].join('\n')
}

/** Another file that says how long, and is read after ours. */
async function lastWord(root: string): Promise<string | undefined> {
  const found = new Map<string, string>()
  for (const folder of folders) {
    for (const name of await readdir(join(root, folder)).catch(() => [])) {
      if (name.endsWith('.conf') && !found.has(name)) found.set(name, `/${folder}/${name}`)
    }
  }
  for (const name of [...found.keys()].sort().reverse()) {
    const path = found.get(name)
    if (path === undefined || name <= ownName) return undefined
    const text = await readFile(join(root, path), 'utf8').catch(() => '')
    if (/^\s*InhibitDelayMaxSec\s*=/m.test(text)) return path
  }
  return undefined
}
