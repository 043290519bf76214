/** Drains that a button began: the machine is cordoned, and its pods are evicted within their disruption budgets. */
import { drainVerdict } from '../../../api/pod/drain-verdict.ts'
import type { Pod } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { Loop } from '../../../daemon/run.ts'
import { requestEviction } from '../../apiserver/filters/eviction-request.ts'
import type { LocalAnswer, LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import type { MachineButton } from './home-assistant-settings.ts'

export type DrainNeeds = {
  /** As the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  readonly podsOf: (nodeName: string) => readonly Pod[]
  readonly clock: Clock
  /** Any client of the broker may press buttons without end. */
  readonly limited: LimitedLog
}

export interface Drains {
  /** A button of this node was pressed. The last one counts: `uncordon` ends a drain. */
  press(nodeName: string, button: Exclude<MachineButton, 'restart'>): void
  readonly loop: Loop
}

type Drain = {
  readonly sinceMs: number
  /** When it is advanced next. */
  readonly dueMs: number
  readonly isCordoned: boolean
  /** UIDs of pods whose eviction was accepted. */
  readonly evicted: ReadonlySet<string>
  /** UIDs of pods that a budget held in the last pass. */
  readonly held: ReadonlySet<string>
}

/** Between two attempts of an eviction that a budget does not allow yet. */
const againMs = 5_000
/** Then the drain ends, and the machine stays cordoned: a budget that allows no eviction would be asked for ever. */
const longestMs = 60 * 60_000
/** Evictions on one node in one pass: a node has at most 110 pods by default. */
const evictionsAtOnce = 50
/** Nodes served in one pass, and pause between passes: any client of the broker may press buttons without end. */
const nodesAtOnce = 20
const pauseMs = 1_000

export function drains({ request, podsOf, clock, limited }: DrainNeeds): Drains {
  const running = new Map<string, Drain>()
  const uncordons = new Set<string>()
  const wake = alarm(clock)

  const cordon = async (node: string, unschedulable: boolean, signal: AbortSignal): Promise<boolean> => {
    const path = `/api/v1/nodes/${encodeURIComponent(node)}`
    const body = { spec: { unschedulable } }
    const { code } = await request({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' }, signal)
    if (code === 200) return true
    limited.warn(`cordon ${node}`, unschedulable ? 'Node not cordoned' : 'Node not uncordoned', { node, code })
    return false
  }

  /** The drain with what it has done; undefined: it is over. */
  const advance = async (node: string, drain: Drain, signal: AbortSignal): Promise<Drain | undefined> => {
    if (!drain.isCordoned && !(await cordon(node, true, signal))) return undefined
    const leaving = podsToEvict(podsOf(node))
    if (leaving.length === 0) {
      limited.info(`drained ${node}`, 'Node drained', { node })
      return undefined
    }
    if (clock.monotonicMs() - drain.sinceMs >= longestMs) {
      limited.warn(`drain ended ${node}`, 'Drain ended: pods stay', { node, pods: leaving.length })
      return undefined
    }
    return await evictNext(node, drain, nextEvictions(leaving, drain), signal)
  }
  const evictNext = async (
    node: string,
    drain: Drain,
    pods: ReturnType<typeof nextEvictions>,
    signal: AbortSignal,
  ): Promise<Drain | undefined> => {
    const evicted = new Set(drain.evicted)
    const held = new Set<string>()
    for (const pod of pods) {
      if (signal.aborted || running.get(node) !== drain) break
      const { namespace = '', name = '', uid = '' } = pod.metadata
      const { outcome, code } = await requestEviction({ namespace, name, uid }, (one) => request(one, signal))
      if (outcome === 'refused') {
        const refused = { node, pod: `${namespace}/${name}`, code }
        limited.warn(`drain ended ${node}`, 'Drain ended: a pod cannot be evicted', refused)
        return undefined
      }
      const pile = outcome === 'evicted' ? evicted : held
      pile.add(uid)
    }
    return { ...drain, isCordoned: true, evicted, held }
  }

  const pass = async (signal: AbortSignal) => {
    for (const node of [...uncordons].slice(0, nodesAtOnce)) {
      uncordons.delete(node)
      if (await cordon(node, false, signal)) limited.info(`uncordoned ${node}`, 'Node uncordoned', { node })
    }
    const due = [...running].filter(([, { dueMs }]) => clock.monotonicMs() >= dueMs)
    for (const [node, drain] of due.slice(0, nodesAtOnce)) {
      const after = await advance(node, drain, signal)
      // Another button may have been pressed meanwhile.
      if (running.get(node) !== drain) continue
      if (after === undefined) running.delete(node)
      else running.set(node, { ...after, dueMs: clock.monotonicMs() + againMs })
    }
  }

  return {
    press(node, button) {
      const now = clock.monotonicMs()
      running.delete(node)
      uncordons.delete(node)
      if (button === 'uncordon') uncordons.add(node)
      else running.set(node, { sinceMs: now, dueMs: now, isCordoned: false, evicted: new Set(), held: new Set() })
      wake.ring()
    },
    loop: {
      name: 'home-assistant-buttons',
      async run(signal) {
        while (!signal.aborted) {
          await pass(signal)
          await clock.sleep(pauseMs, signal)
          if (running.size + uncordons.size === 0) await wake.sleep(idleMs, signal)
        }
      },
    },
  }
}

const idleMs = 24 * 3600_000

/** Pods that nothing would create again stay: a button cannot ask. */
export function podsToEvict(pods: readonly Pod[]): readonly Pod[] {
  return pods.filter((pod) => drainVerdict(pod).verdict === 'evict')
}

/** Pods that a budget held in the last pass come after all others, which they would hinder for ever. */
function nextEvictions(leaving: readonly Pod[], { evicted, held }: Drain): readonly Pod[] {
  const left = leaving.filter(({ metadata: { uid = '' } }) => !evicted.has(uid))
  const isHeld = ({ metadata: { uid = '' } }: Pod) => held.has(uid)
  return [...left.filter((pod) => !isHeld(pod)), ...left.filter(isHeld)].slice(0, evictionsAtOnce)
}
