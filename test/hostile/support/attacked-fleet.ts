/** A running fleet with an honest node and a machine that an attacker has; and what must stay true of it under every attack. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { volumeFolders } from '../../../agent/adapters/disk/volume-store.ts'
import { type FleetOptions, type JoinedFleet, joinedFleet } from '../../support/joined-fleet.ts'
import type { Program } from '../../support/program.ts'
import { eventually } from '../../support/wait.ts'
import { type Address, type ApiAttacker, addressOf, adminOf, apiAttacker, nodeOfFolder } from './clients.ts'
import { referenceCpuMs, type Sample } from './monitor.ts'

export const honest = 'pi-1'
export const mallory = 'mallory'

export type AttackedFleet = JoinedFleet & {
  /** The honest node's. */
  readonly agents: readonly Program[]
  readonly api: Address
  readonly mqtt: Address
  readonly admin: ApiAttacker
  /** Resident, of the controller's process. */
  controllerMiB(): Promise<number>
  /** The characters of the controller's log so far. */
  logLength(): number
  /** The same of the honest node's agent. */
  agentLogLength(): number
  /** Where the honest node's agent answers on its own machine. */
  endpoint(): string
  /** Does the honest node keep anything of this pod's volumes on its disk? */
  volumesOf(uid: string): Promise<boolean>
  /**
   * Runs the attack while an administrator and the honest node go about their work. They must not notice: an answer takes at most
   * half a second of a machine that has nothing else to do, and the lease is never older than 20 s. Resolves with how much longer the
   * machine took than that.
   */
  unnoticed(t: Test, attack: () => Promise<void>): Promise<number>
}

export async function attackedFleet(
  t: Test,
  settings: { readonly [name: string]: unknown } = {},
  front?: FleetOptions['front'],
): Promise<AttackedFleet> {
  const fleet = await joinedFleet(t, { names: [honest, mallory], controller: settings, ...(front && { front }) })
  const { controller } = fleet
  const agents = await fleet.startReady(honest)
  const admin = adminOf(await readFile(controller.kubeconfig, 'utf8'))
  const api = apiAttacker(admin.url, admin)
  t.teardown(async () => api.close())
  const { host } = addressOf(controller.apiUrl)
  return {
    ...fleet,
    agents,
    endpoint: () => endpointOf(agents),
    volumesOf: (uid) => hasVolumes(fleet.dataDir(honest), uid),
    agentLogLength: () => JSON.stringify(agents.map(({ lines }) => lines)).length,
    api: addressOf(controller.apiUrl),
    mqtt: { host, port: controller.mqttPort },
    admin: api,
    controllerMiB: async () => Number(/VmRSS:\s+(\d+)/.exec(await statusOf(controller.program.pid))?.[1]) / 1024,
    logLength: () => JSON.stringify(controller.program.lines).length,
    unnoticed: (t, attack) => unnoticedBy(t, controller.kubeconfig, attack),
  }
}

/** The attacker's machine, as the API and the broker identify it. */
export async function malloryOf({ dataDir, controller }: AttackedFleet) {
  const identity = await nodeOfFolder(dataDir(mallory))
  return { identity, api: apiAttacker(controller.apiUrl, identity) }
}

export const allowedMs = 500
/** A machine that is busier than this does not excuse more. */
const mostBusy = 4
const allowedLeaseAgeMs = 20_000

/** Resolves with how much longer the machine took than when it has nothing else to do. */
export async function unnoticedBy(t: Test, kubeconfig: string, attack: () => Promise<void>): Promise<number> {
  const monitor = spawn(
    process.execPath,
    [fileURLToPath(new URL('monitor.js', import.meta.url)), 'watch', kubeconfig, honest],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const exit = once(monitor, 'exit')
  const lines = createInterface({ input: monitor.stdout })[Symbol.asyncIterator]()
  await lines.next()
  let samples: readonly Sample[] = []
  try {
    await attack()
  } finally {
    monitor.stdin.end()
    samples = JSON.parse((await lines.next()).value ?? '[]')
    await exit
  }
  const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b)
  const at = (values: readonly number[], share: number) => values[Math.floor(values.length * share)] ?? 0
  const took = sorted(samples.map(({ apiMs = Number.POSITIVE_INFINITY }) => apiMs))
  const ages = samples.flatMap(({ leaseAgeMs }) => leaseAgeMs ?? [])
  // Other programs run on this machine, the attack among them: what takes 10 ms of a processor takes longer there.
  const busyIn = (referenceMs: number) => Math.min(mostBusy, Math.max(1, referenceMs / referenceCpuMs))
  const busy = busyIn(at(sorted(samples.map(({ referenceMs }) => referenceMs)), 0.9))
  const worst = took.at(-1) ?? Number.POSITIVE_INFINITY
  // The machine may be held up for one moment only: that shows in the request to the other server at that moment.
  const late = samples.filter(
    ({ apiMs = Number.POSITIVE_INFINITY, referenceMs }) => apiMs > allowedMs * Math.max(busy, busyIn(referenceMs)),
  )
  t.comment(
    `${samples.length} requests: half within ${Math.round(at(took, 0.5))} ms, 99 % within ${Math.round(at(took, 0.99))} ms, ` +
      `the slowest ${Math.round(worst)} ms, on a machine ${busy.toFixed(1)} times slower than alone; ` +
      `oldest lease ${Math.round(Math.max(...ages) / 1000)} s`,
  )
  t.ok(samples.length > 0, 'an administrator asks')
  t.same(late, [], `and waits ${allowedMs} ms at most, times ${busy.toFixed(1)} or as the machine was held up`)
  t.ok(Math.max(...ages) <= allowedLeaseAgeMs, 'the lease of the honest node stays young')
  return busy
}

function endpointOf(agents: readonly Program[]): string {
  const url = agents.flatMap(({ lines }) => lines).find(({ message }) => message === 'Local endpoint open')?.['url']
  if (typeof url !== 'string') throw new Error('The agent did not log where its local endpoint is')
  return url
}

/** Folders of volumes have the pod's uid in their path. */
async function hasVolumes(dataDir: string, uid: string): Promise<boolean> {
  const { dataDirectory } = await volumeFolders(dataDir)
  const names = await readdir(dataDirectory).catch(() => [])
  return names.some((name) => name.includes(uid))
}

async function statusOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/status`, 'utf8')
}

/** Waits until the controller has got over it: the attack's effects on its memory count, not its garbage. */
export async function settled(fleet: AttackedFleet, maximumMiB: number): Promise<number> {
  return eventually(`the controller is below ${maximumMiB} MiB`, async () => {
    const now = await fleet.controllerMiB()
    return now <= maximumMiB && now
  })
}
