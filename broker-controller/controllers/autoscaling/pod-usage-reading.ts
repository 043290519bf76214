/** Reads what pods use from the reports of their nodes, as metrics.k8s.io shows it. */

import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Store, StoredPod } from '../../store/store.ts'
import { mayReportUsage, reportedPodUsage } from '../../usage/pod-usage.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { ReadUsage } from './metric-proposals.ts'

export type UsageReadingNeeds = { readonly store: Store; readonly usage: Pick<UsageBoard, 'look' | 'newest'> }

const nodesAtOnce = 64

/** By the names of pods; those whose usage is not known are left out. Waits for nodes that were not asked lately, five seconds at most. */
export async function readUsage(
  { store, usage }: UsageReadingNeeds,
  pods: readonly StoredPod[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReadUsage>> {
  const names = new Set<string>()
  await eachInTurns(pods, ({ spec: { nodeName } }) => {
    if (nodeName) names.add(nodeName)
  })
  const present: string[] = []
  await inParallel(names, nodesAtOnce, async (name) => {
    await yieldTurn()
    const node = await store.get('nodes', { namespace: '', name })
    if (node !== undefined && mayReportUsage(node)) present.push(name)
  })
  await usage.look(present, signal)
  const read = new Map<string, ReadUsage>()
  await eachInTurns(pods, (pod) => {
    const used = reportedPodUsage(usage, pod)
    if (used === undefined) return
    const containers = [...used.containers].map(
      ([name, { cpu, memoryKi }]) => [name, { cpu: Math.ceil(cpu / 1e6), memory: memoryKi * 1024 * 1000 }] as const,
    )
    const { receivedWallMs, windowSeconds } = used.sample
    read.set(pod.metadata.name, {
      timestampMs: receivedWallMs,
      windowMs: windowSeconds * 1000,
      containers: new Map(containers),
    })
  })
  return read
}
