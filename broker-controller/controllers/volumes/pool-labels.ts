/**
 * Loop: labels nodes with the pools that they report, so that volumes can require them. A pool that two nodes report stays with the one that
 * has its label: the other one may have a copy of its disk.
 */
import type { Node } from '../../../api/node.ts'
import { labelledPools, poolLabel, reportedPools } from '../../../api/storage/pools.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { keySets } from '../../store/indexes/key-sets.ts'
import { type InformerNeeds, informer } from '../../store/informer.ts'
import { nodeReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import { isReady } from '../node-lifecycle/zones.ts'

/** The labels of the pools that the node is to have. `isElsewhere`: another node has its label. */
export function poolLabels(node: Node, isElsewhere: (id: string) => boolean): ReadonlySet<string> {
  const own = new Set(labelledPools(node))
  return new Set(reportedPools(node).flatMap(({ id }) => (own.has(id) || !isElsewhere(id) ? [poolLabel(id)] : [])))
}

/** undefined: it has them already. */
export function withPoolLabels<N extends Node>(node: N, wanted: ReadonlySet<string>): N | undefined {
  const present = labelledPools(node).map(poolLabel)
  if (isSame(present, [...wanted])) return undefined
  const others = Object.entries(node.metadata.labels ?? {}).filter(([label]) => !present.includes(label))
  const labels = Object.fromEntries([...others, ...[...wanted].map((label): [string, string] => [label, ''])])
  return { ...node, metadata: { ...node.metadata, labels } }
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  const all = new Set(others)
  return new Set(some).size === all.size && some.every((one) => all.has(one))
}

function idsOf(node: Node | undefined): readonly string[] {
  return node === undefined ? [] : reportedPools(node).map(({ id }) => id)
}

function labelsOf(node: Node | undefined): readonly string[] {
  return node === undefined ? [] : labelledPools(node)
}

/** A pool of the node that another one has the label of; undefined: there is none. */
export function poolElsewhere(
  node: Node,
  holderOf: (id: string) => Node | undefined,
): { readonly message: string } | undefined {
  for (const { id } of reportedPools(node)) {
    const holder = labelledPools(node).includes(id) ? undefined : holderOf(id)
    if (holder === undefined) continue
    const { name = '' } = holder.metadata
    const remedy = isReady(holder)
      ? 'The disk of one of them is a copy: remove it'
      : `If this machine was node ${name} before, or has its disk now, delete that Node: kubectl delete node ${name}`
    return { message: `The pool ${id} is that of node ${name}, so volumes in it are not used here. ${remedy}` }
  }
  return undefined
}

export type PoolLabelNeeds = InformerNeeds & { readonly events: EventRecorder }

/** Events are kept for an hour. */
const repeatMs = 10 * 60_000

export function poolLabelController(needs: PoolLabelNeeds): Loop {
  const { store, clock, log, events } = needs
  const queue = workQueue(clock)
  /** By id: the node with its label, and all that report it. */
  const holders = new Map<string, string>()
  const reporters = keySets()

  const report = (name: string, before: readonly string[], now: readonly string[]) => {
    for (const id of before) reporters.delete(id, name)
    for (const id of now) reporters.add(id, name)
  }
  const label = (name: string, before: readonly string[], now: readonly string[]) => {
    for (const id of now) if (!holders.has(id)) holders.set(id, name)
    for (const id of before.filter((one) => !now.includes(one) && holders.get(one) === name)) {
      holders.delete(id)
      for (const other of reporters.of(id)) queue.add(other)
    }
  }

  const nodes = informer(needs, 'nodes', (present, previous) => {
    const { name } = (present ?? previous)?.metadata ?? {}
    if (name === undefined) return
    const reported = idsOf(present)
    const labelled = labelsOf(present)
    report(name, idsOf(previous), reported)
    label(name, labelsOf(previous), labelled)
    // Also what was left by a controller that ended before it wrote, and what a person changed.
    if (present !== undefined && !isSame(labelled, reported)) queue.add(name)
  })

  const reconcile = async (name: string): Promise<Reconciled> => {
    nodes.catchUp()
    const isElsewhere = (id: string) => (holders.get(id) ?? name) !== name
    const node = nodes.get({ namespace: '', name })
    if (node === undefined) return undefined
    await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name },
      uid: node.metadata.uid,
      change: (fresh) => withPoolLabels(fresh, poolLabels(fresh, isElsewhere)),
    })
    const holderOf = (id: string) => {
      const holder = holders.get(id)
      return holder === undefined || holder === name ? undefined : nodes.get({ namespace: '', name: holder })
    }
    const elsewhere = poolElsewhere(node, holderOf)
    if (elsewhere === undefined) return undefined
    const what = { type: 'Warning', reason: 'PoolElsewhere', component: 'pool-labels', ...elsewhere } as const
    await events.record({ object: nodeReference(name), ...what })
    return { requeueAfterMs: repeatMs }
  }

  return {
    name: 'pool-labels',
    run: (signal) =>
      runLoops(
        [
          { name: 'nodes', run: nodes.run },
          {
            name: 'work',
            async run(stop) {
              await nodes.listed
              // One after another: two nodes with one pool are decided in turn.
              if (!stop.aborted) await runController({ name: 'pool-labels', reconcile }, queue, log, stop)
            },
          },
        ],
        signal,
        log,
      ),
  }
}
