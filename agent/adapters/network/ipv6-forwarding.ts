/** The kernel's forwarding of IPv6 packets, which pods with IPv6 addresses need, through its settings below /proc/sys. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'

export interface IPv6Forwarding {
  /** From now on the kernel forwards IPv6, and keeps the default route that a router announces. Rejects with the reason. */
  enable(): Promise<void>
  /** Sets what `enable` has changed as it was, also that of an earlier process. */
  restore(): Promise<void>
}

/**
 * What was changed. It outlasts a reboot: Docker lets the kernel forward IPv6 when it starts with a network that has it, before the agent
 * does, and that is not a router that the user has set up.
 */
type Changed = { readonly interfaces: readonly string[] }

/** `root`: where the kernel's files are found. `dataDir`: of the agent, where it is recorded. */
export function kernelIPv6Forwarding(root: string, dataDir: string): IPv6Forwarding {
  const settings = join(root, 'proc/sys/net/ipv6/conf')
  const recordFile = join(dataDir, 'ipv6-forwarding.json')
  const read = async (...names: readonly string[]) =>
    (await readFile(join(settings, ...names), 'utf8').catch(() => '')).trim()
  const write = (value: string, ...names: readonly string[]) => writeFile(join(settings, ...names), `${value}\n`)
  const recorded = async (): Promise<Changed | undefined> => {
    const text = await readFile(recordFile, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : changedIn(text)
  }
  const record = async (changed: Changed) => {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await replaceFile(recordFile, JSON.stringify(changed))
  }

  /** Those that take announcements of routers only as long as the kernel does not forward (ip-sysctl, accept_ra). */
  const announced = async () => {
    const names = (await readdir(settings).catch(() => [])).filter((name) => !ofPods.test(name))
    const values = await Promise.all(names.map((name) => read(name, 'accept_ra')))
    return names.filter((_, index) => values[index] === '1')
  }

  return {
    async enable() {
      const before = await recorded()
      const setting = await read('all', 'forwarding')
      if (setting === '') throw new Error('The kernel has no setting net.ipv6.conf.all.forwarding')
      const forwards = setting === '1'
      // A router that the user has set up is left as it is.
      if (forwards && before === undefined) return
      const interfaces = await announced()
      if (forwards && interfaces.length === 0) return
      const all = [...new Set([...(before?.interfaces ?? []), ...interfaces])]
      await record({ interfaces: all })
      // First: the kernel drops the routes of interfaces with 1 at once when it begins to forward.
      for (const name of interfaces) await write('2', name, 'accept_ra')
      if (!forwards) await write('1', 'all', 'forwarding')
    },
    async restore() {
      const before = await recorded()
      if (before === undefined) return
      await write('0', 'all', 'forwarding')
      for (const name of before.interfaces)
        if ((await read(name, 'accept_ra')) === '2') await write('1', name, 'accept_ra')
      await rm(recordFile, { force: true })
    },
  }
}

/** Pods are not routers of their machine; `all` has no effect, and `default` is for interfaces to come. */
const ofPods = /^(all|default|lo|docker\d+|br-[0-9a-f]{12}|veth.*|bramble-.*)$/

function changedIn(text: string): Changed | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || !('interfaces' in value)) return undefined
    const { interfaces } = value
    if (!Array.isArray(interfaces)) return undefined
    const names = interfaces.filter((name): name is string => typeof name === 'string' && /^[\w.@:-]{1,15}$/.test(name))
    return { interfaces: names }
  } catch {
    return undefined
  }
}
