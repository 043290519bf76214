/** Loop: keeps the rules of the ports that pods of this node are at, from the pods that have addresses. */
import { alarm } from '../../../daemon/alarm.ts'
import { type BackoffSettings, longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { LocalPods } from '../policies/pod-isolation.ts'
import type { LocalPod, PodSandbox } from '../policies/policy-rules.ts'
import { type PodPort, portGuardName, portGuardTable } from './port-guard.ts'

/** `port`: an interface of this machine, at this bridge. */
export type PodPlace = { readonly port: string; readonly bridge: string }

export interface PodPorts {
  /** Undefined: the pod has ended, or it is not at a bridge. Never rejects for either. */
  placeOf(sandbox: PodSandbox): Promise<PodPlace | undefined>
  /** Those that this machine has at the bridge. */
  addressesOf(bridge: string): readonly string[]
}

/** Tables of the family `bridge` in the kernel. Each call rejects where nft or the kernel cannot do it. */
export interface PortTable {
  apply(transaction: string): Promise<void>
  /** The kernel enters the table of this name. */
  isIntact(name: string): Promise<boolean>
  /** Without such a table it does nothing. */
  remove(name: string): Promise<void>
  /** Removes those of agents that had other names and whose pods are gone: their addresses may be of other pods by now. */
  removeUnused(name: string): Promise<void>
}

export type PortGuardNeeds = {
  readonly ports: PodPorts
  readonly table: PortTable
  readonly reads: { readonly localPods: Reader<LocalPods> }
  readonly clock: Clock
  readonly log: Log
}

/** A flush of all rules by another program is found within this time, and with the next pod. */
const verifyMs = 5 * 60_000
/** A kernel without such tables does not get them while it runs, but nft may be installed. */
const retry: BackoffSettings = { firstMs: 1_000, maxMs: 10 * 60_000 }

export function portGuardManager({ ports, table, reads, clock, log }: PortGuardNeeds, nodeName: string): Loop {
  const name = portGuardName(nodeName)
  const changed = alarm(clock)
  /** By sandbox and process: a place does not change while the sandbox runs. */
  let places = new Map<string, PodPlace>()
  let applied: string | 'none' | 'unknown' = 'unknown'
  let isFirst = true
  let verifiedMs = 0
  let failures = 0
  let lastFailure: string | undefined

  const placesOf = async (pods: readonly LocalPod[]) => {
    const next = new Map<string, PodPlace>()
    for (const { sandbox } of pods) {
      if (sandbox === undefined) continue
      const place = places.get(runOf(sandbox)) ?? (await ports.placeOf(sandbox))
      if (place !== undefined) next.set(runOf(sandbox), place)
    }
    places = next
  }

  const sync = async () => {
    const { pods, isComplete } = reads.localPods.get()
    // Until all pods are known, the table of an earlier agent stays.
    if (!isComplete) return
    await placesOf([...pods.values()])
    const known = portsAt(places, [...pods.values()])
    const bridges = new Set([...places.values()].map(({ bridge }) => bridge))
    const gateways = [...bridges].flatMap(ports.addressesOf)
    const wanted = known.length === 0 ? 'none' : portGuardTable(name, known, gateways)
    if (isFirst) await table.removeUnused(name)
    isFirst = false
    if (wanted === applied && !(await isFlushed())) return
    applied = 'unknown'
    if (wanted === 'none') await table.remove(name)
    else await table.apply(wanted)
    verifiedMs = clock.monotonicMs()
    applied = wanted
  }

  const isFlushed = async () => {
    if (applied === 'none' || clock.monotonicMs() - verifiedMs < verifyMs) return false
    verifiedMs = clock.monotonicMs()
    if (await table.isIntact(name)) return false
    log.warn('Rules of the ports of pods were removed by another program; they are applied again')
    return true
  }

  const pass = async () => {
    try {
      await sync()
      failures = 0
      lastFailure = undefined
    } catch (error) {
      applied = 'unknown'
      const failure = storyOf(error)
      if (failure !== lastFailure)
        log.warn('A pod of this node can pretend to be another one on their bridge', { error })
      lastFailure = failure
      failures++
    }
  }

  return {
    name: 'pod-ports',
    async run(signal) {
      const stop = reads.localPods.onChange(changed.ring)
      try {
        while (!signal.aborted) {
          await pass()
          const restMs = applied === 'none' || isFirst ? longestTimerMs : verifyMs
          await changed.sleep(failures > 0 ? longestBackoffMs(failures - 1, retry) : restMs, signal)
        }
      } finally {
        stop()
      }
    },
  }
}

/** The same container has another interface each time that it is started. */
function runOf({ id, pid }: PodSandbox): string {
  return `${id} ${pid}`
}

/** In the order of their names, so that the same pods make the same table. A port that two pods claim is neither's. */
function portsAt(places: ReadonlyMap<string, PodPlace>, pods: readonly LocalPod[]): readonly PodPort[] {
  const found = new Map<string, PodPort | undefined>()
  for (const { sandbox, ip, ipv6 } of pods) {
    const place = sandbox && places.get(runOf(sandbox))
    if (place === undefined || sandbox?.mac === undefined) continue
    const { port } = place
    found.set(port, found.has(port) ? undefined : { port, mac: sandbox.mac, ip, ...(ipv6 !== undefined && { ipv6 }) })
  }
  return [...found.values()].flatMap((one) => one ?? []).sort((a, b) => (a.port < b.port ? -1 : 1))
}
