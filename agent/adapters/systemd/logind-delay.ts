/** Sets how long logind waits for delay locks: writes a drop-in, applies it without a restart, and reads the granted delay. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { GrantedDelay } from '../../shutdown/inhibitor.ts'
import type { SystemBus } from './system-bus.ts'
import { rereadLogindFiles } from './systemd-bus.ts'

/**
 * The drop-in whose name sorts last is in force: letters sort after digits, so unattended-upgrades' file would override `99-…`.
 */
const ownName = 'zzz-bramble.conf'
const ownDropIn = `etc/systemd/logind.conf.d/${ownName}`

/** A file in an earlier folder replaces those of the same name in later ones. */
const folders = ['etc', 'run', 'usr/local/lib', 'usr/lib'].map((folder) => `${folder}/systemd/logind.conf.d`)

export type DelayNeeds = {
  readonly root: string
  readonly bus: Pick<SystemBus, 'call'>
  readonly delayMs: () => Promise<number>
}

/** Wait after the signal. */
const appliedMs = 2_000

export function logindDelay({ root, bus, delayMs }: DelayNeeds) {
  const path = join(root, ownDropIn)
  /** A delay that was not granted is not requested again. */
  let refused: number | undefined

  const apply = async (isSo: (ms: number) => boolean) => {
    await rereadLogindFiles(bus)
    const untilMs = performance.now() + appliedMs
    let grantedMs = await delayMs()
    while (!isSo(grantedMs) && performance.now() < untilMs) {
      await pause(50)
      grantedMs = await delayMs()
    }
    return grantedMs
  }

  return {
    async ask(wantedMs: number | undefined): Promise<GrantedDelay> {
      const before = await delayMs()
      const own = await readFile(path, 'utf8').catch(() => undefined)
      const text = dropIn(wantedMs)
      const isGranted = reaches(before, wantedMs)
      if (isGranted && (own === undefined || own === text)) return { grantedMs: before, because: undefined }
      if (own === text && refused === wantedMs) return { grantedMs: before, because: await lastWord(root) }
      if (own !== text && !(await put(path, text))) {
        return { grantedMs: before, because: `/${ownDropIn} cannot be written` }
      }
      const grantedMs = await apply((ms) => isApplied(ms, before, wantedMs))
      refused = reaches(grantedMs, wantedMs) ? undefined : wantedMs
      return { grantedMs, because: refused === undefined ? undefined : await lastWord(root) }
    },
  }
}

function reaches(ms: number, wantedMs: number | undefined): boolean {
  return wantedMs === undefined || ms >= wantedMs
}

/** Where the delay was long enough before, any change of it shows that the file was read. */
function isApplied(ms: number, before: number, wantedMs: number | undefined): boolean {
  return reaches(before, wantedMs) ? ms !== before : reaches(ms, wantedMs)
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await replaceFile(path, text, 0o644)
}

/** undefined: no file is wanted. */
function dropIn(ms: number | undefined): string | undefined {
  if (ms === undefined) return undefined
  return [
    '# Written by bramble-agent, for shutdownGracePeriod in its configuration; rewritten at its start.',
    '[Login]',
    `InhibitDelayMaxSec=${Math.ceil(ms / 1000)}`,
    '',
  ].join('\n')
}

/** Another file that sets the delay and is read after the agent's. */
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
    if (/^[ \t]*InhibitDelayMaxSec[ \t]*=/m.test(text)) return `${path} grants less`
  }
  return undefined
}

/** undefined: no file. False if that failed. */
async function put(path: string, text: string | undefined): Promise<boolean> {
  try {
    if (text === undefined) await rm(path)
    else await write(path, text)
    return true
  } catch {
    return false
  }
}
