/**
 * The CSI drivers of this machine: each puts a socket into the registration folder of the kubelet, is asked what it is, and is used as long as
 * its socket is there (pkg/kubelet/pluginmanager). A driver that hangs holds up no other, nor the agent.
 */
import type { Stats } from 'node:fs'
import { lstat, mkdir, readdir, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { alarm } from '../../../daemon/alarm.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Cell } from '../../../daemon/cell.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { NodeDriver } from '../../pods/volumes/csi/node-drivers.ts'
import { pluginChanges } from '../../pods/volumes/csi/plugin-changes.ts'
import type { RegisteredDriver } from './csi-calls.ts'
import { type RegisteredPlugin, registeredPlugin } from './plugin-registration.ts'

export interface CsiRegistry extends Loop {
  driver(name: string): RegisteredDriver | undefined
}

export type CsiRegistryNeeds = {
  readonly kubeletDirectory: string
  /** The drivers, once those that were there at the start have been asked. */
  readonly writes: { readonly csiDrivers: Cell<readonly NodeDriver[] | undefined> }
  /** Called once, before anything else. */
  readonly open: () => Promise<void>
  /** Called once a minute while there are drivers, and when one is registered. */
  readonly release: () => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** A socket of the folder. Its identity changes when the driver makes another one at the same path. */
type Plugin = {
  readonly id: string
  attempts: number
  nextMs: number
  isAsked: boolean
  found?: RegisteredPlugin
}

/** What inotify does not report, such as a folder that was made again, is found so. */
const rescanMs = 60_000
/** The drivers that were there at the start are reported together. */
const settleMs = 10_000
const retry = { firstMs: 1_000, maxMs: 120_000 }

export function csiRegistry(needs: CsiRegistryNeeds): CsiRegistry {
  const { kubeletDirectory, writes, open, release, clock, log } = needs
  const folder = join(kubeletDirectory, 'plugins_registry')
  const plugins = new Map<string, Plugin>()
  const wake = alarm(clock)
  let startedMs = 0

  const report = () => {
    const drivers = [...plugins.values()].flatMap(({ found }) => found?.node ?? [])
    const asked = [...plugins.values()].every(({ attempts, found }) => found !== undefined || attempts > 0)
    if (writes.csiDrivers.get() === undefined && !asked && clock.monotonicMs() < startedMs + settleMs) return
    writes.csiDrivers.set(drivers.sort((a, b) => (a.name < b.name ? -1 : 1)))
  }

  const ask = async (name: string, plugin: Plugin) => {
    const found = await registeredPlugin(join(folder, name), {
      holder: (driver) => [...plugins].find(([other, { found }]) => other !== name && found?.node.name === driver)?.[0],
    })
    if (plugins.get(name) !== plugin) return
    plugin.found = found
    log.info('CSI driver registered', { driver: found.node.name })
  }

  const start = (name: string, plugin: Plugin) => {
    plugin.isAsked = true
    void ask(name, plugin)
      .then(
        () => void release().catch(() => undefined),
        (error: unknown) => {
          if (plugins.get(name) === plugin) log.warn('Plugin not registered', { socket: join(folder, name), error })
        },
      )
      .finally(() => {
        plugin.isAsked = false
        plugin.nextMs = clock.monotonicMs() + longestBackoffMs(plugin.attempts++, retry)
        wake.ring()
      })
  }

  const scan = async () => {
    const known = new Map([...plugins].map(([name, { id }]) => [name, id]))
    const { gone, added } = pluginChanges(known, await socketsIn(folder))
    for (const name of gone) {
      const found = plugins.get(name)?.found
      plugins.delete(name)
      if (found !== undefined) log.info('CSI driver is gone', { driver: found.node.name })
    }
    for (const [name, id] of added) plugins.set(name, { id, attempts: 0, nextMs: 0, isAsked: false })
  }

  /** Gives the time until the next pass. */
  const pass = async (): Promise<number> => {
    await scan()
    const nowMs = clock.monotonicMs()
    let nextMs = nowMs + rescanMs
    for (const [name, plugin] of plugins) {
      if (plugin.found !== undefined || plugin.isAsked) continue
      if (plugin.nextMs <= nowMs) start(name, plugin)
      else nextMs = Math.min(nextMs, plugin.nextMs)
    }
    report()
    if (writes.csiDrivers.get() === undefined) nextMs = Math.min(nextMs, startedMs + settleMs)
    return Math.max(0, nextMs - nowMs)
  }

  const follow = async (signal: AbortSignal) => {
    try {
      for await (const _ of watch(folder, { signal, persistent: false })) wake.ring()
    } catch {
      // The periodic scan goes on.
    }
  }

  return {
    name: 'csi-drivers',
    driver: (name) => [...plugins.values()].find(({ found }) => found?.node.name === name)?.found,
    async run(signal) {
      await open().catch((error: unknown) => log.warn('Volumes of CSI drivers not read', { error }))
      startedMs = clock.monotonicMs()
      // Without them no pod of a driver starts here; an agent that is not root mounts nothing.
      const made = process.getuid?.() === 0 ? makeFolders(kubeletDirectory) : Promise.resolve()
      await made.catch((error: unknown) =>
        log.warn('CSI drivers cannot register: the folders of the kubelet cannot be made', { error }),
      )
      const followed = follow(signal)
      while (!signal.aborted) {
        const waitMs = await pass().catch((error: unknown) => {
          log.warn('Folder of plugins not read', { folder, error })
          return rescanMs
        })
        await wake.sleep(waitMs, signal)
        if (plugins.size > 0 && !signal.aborted) void release().catch(() => undefined)
      }
      await followed
    },
  }
}

/** The pods of drivers mount these folders, which must be there (hostPath of type Directory). */
async function makeFolders(kubeletDirectory: string): Promise<void> {
  for (const name of ['plugins_registry', 'plugins', 'pods']) {
    await mkdir(join(kubeletDirectory, name), { recursive: true, mode: 0o750 })
  }
}

/** By name: what identifies the socket. Those that begin with a dot are being made; a socket of another user would be given Secrets. */
async function socketsIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  const names = await readdir(folder).catch((error: unknown): string[] => {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  })
  for (const name of names.filter((one) => !one.startsWith('.')).sort()) {
    const facts = await lstat(join(folder, name)).catch(() => undefined)
    if (facts?.isSocket() && isOwn(facts)) found.set(name, `${facts.dev} ${facts.ino} ${facts.ctimeMs}`)
  }
  return found
}

function isOwn({ uid }: Stats): boolean {
  return uid === 0 || uid === process.getuid?.()
}
