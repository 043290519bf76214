/**
 * What waits after a restore: nodes run pods that the store does not have until they have sent their checkpoints. A controller that
 * counted only the pods in the store would create them a second time, and the scheduler would bind a pod that another node runs.
 */
import type { AnyObject } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { type InformerNeeds, informer } from '../informer.ts'
import type { StoreOrigin } from '../store.ts'
import { type CheckpointWindow, lateNodes, leastOpenMs } from './checkpoint-window.ts'

/** All workloads and pending pods wait, or StatefulSets and their pending pods, or none. */
export type HeldWorkloads = 'all' | 'statefulsets' | 'none'

export type HoldFacts = {
  /** Checkpoints are accepted. */
  readonly isOpen: boolean
  /** For this long. */
  readonly openMs: number
  /** How many nodes came with the store, and which of them are there still and sent no checkpoint. */
  readonly nodes: number
  readonly late: number
}

/**
 * Until all nodes of the backup have sent their checkpoints everything waits, at most ten minutes: a Deployment must not stand still for
 * a machine that is switched off. StatefulSets promise at most one pod of a name, so they wait until no checkpoint is accepted any more.
 * A store without nodes has none to wait for: everything waits for ten minutes, in which nodes register.
 */
export function heldAfterRestore({ isOpen, openMs, nodes, late }: HoldFacts): HeldWorkloads {
  if (!isOpen) return 'none'
  const isEarly = openMs < leastOpenMs
  if (nodes === 0) return isEarly ? 'all' : 'none'
  return isEarly && late > 0 ? 'all' : 'statefulsets'
}

export interface RestoreHold {
  /** Whether controllers leave these alone for now: create no pods, and delete none. */
  holds(what: 'workloads' | 'statefulsets'): boolean
  /** Whether the scheduler leaves it alone: it came with the backup, and a node may run it. */
  holdsPod(pod: Pod): boolean
  /** Whether a claim without a volume, or a volume without a claim, stays so: it came with the backup, and a node may have it bound. */
  holdsUnbound(object: Pick<AnyObject, 'metadata'>): boolean
  /** What waits and for which nodes, for people; undefined: nothing waits. */
  describe(): string | undefined
  /** Called when less is held than before. */
  onRelease(released: () => void): void
}

/** The time limit has no change that would notify of it. */
const lookMs = 10_000
const mostNames = 5

/** Resolves with what is held now, before any controller starts. */
export async function openRestoreHold(
  { store, clock, log }: InformerNeeds,
  window: CheckpointWindow,
  origin: StoreOrigin,
): Promise<RestoreHold & Loop> {
  const listeners: (() => void)[] = []
  const { nodes } = window.progress()
  const late = new Set(window.isOpen() ? lateNodes(nodes, (await store.list('nodes')).items, origin.id) : [])
  const heldNow = () => heldAfterRestore({ ...window.progress(), nodes: nodes.length, late: late.size })
  let held = heldNow()
  if (held === 'all')
    log.warn('Workloads wait for the checkpoints of nodes', { waitsFor: namesOf(late), lateNodes: late.size })

  const look = () => {
    const before = held
    held = heldNow()
    if (held === before) return
    log.info('Workloads continue after the restore', { stillWaiting: held, lateNodes: late.size })
    for (const notify of listeners) notify()
  }
  window.onClose(look)
  const present = informer({ store, clock, log }, 'nodes', (node, previous) => {
    const [name] = [node, previous].flatMap((one) => one?.metadata.name ?? [])
    if (name === undefined || !late.has(name)) return
    if (node !== undefined && lateNodes([name], [node], origin.id).length > 0) return
    late.delete(name)
    look()
  })
  const watchTime = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await clock.sleep(lookMs, signal)
      look()
    }
  }
  const isNew = ({ metadata }: Pick<AnyObject, 'metadata'>) =>
    origin.sinceMs !== undefined && Date.parse(metadata.creationTimestamp ?? '') > origin.sinceMs
  const holds = (what: 'workloads' | 'statefulsets') => held === 'all' || held === what
  return {
    name: 'restore-hold',
    holds,
    holdsUnbound: (object) => held !== 'none' && !isNew(object),
    holdsPod({ metadata }) {
      if (held === 'none' || isNew({ metadata })) return false
      const isStateful = metadata.ownerReferences?.some(({ controller, kind }) => controller && kind === 'StatefulSet')
      return holds(isStateful ? 'statefulsets' : 'workloads')
    },
    describe: () => {
      if (held === 'none') return undefined
      const what = held === 'all' ? 'Workloads' : 'StatefulSets'
      const forWhat =
        late.size === 0 ? 'checkpoints of nodes that are not in the backup' : `the checkpoints of ${namesOf(late)}`
      return `${what} wait for ${forWhat} ('bramble-controller checkpoints' shows until when)`
    },
    onRelease: (released) => void listeners.push(released),
    run: (signal) =>
      runLoops(
        [
          { name: 'restore-hold-nodes', run: present.run },
          { name: 'restore-hold-time', run: watchTime },
        ],
        signal,
        log,
      ),
  }
}

function namesOf(late: ReadonlySet<string>): string {
  const more = late.size - mostNames
  return [...[...late].slice(0, mostNames), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
