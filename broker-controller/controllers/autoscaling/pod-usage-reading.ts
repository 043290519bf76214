/** Reads what pods use from the reports of their nodes, as metrics.k8s.io shows it. */

import type { Store, StoredPod } from '../../store/store.ts'
import { mayReportUsage, reportedPodUsage } from '../../usage/pod-usage.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { ReadUsage } from './metric-proposals.ts'

export type UsageReadingNeeds = { readonly store: Store; readonly usage: Pick<UsageBoard, 'look' | 'newest'> }

/** By the names of pods; those whose usage is not known are left out. Waits for nodes that were not asked lately, five seconds at most. */
export async function readUsage(
  { store, usage }: UsageReadingNeeds,
  pods: readonly StoredPod[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReadUsage>> {
  const names = new Set(pods.flatMap(({ spec }) => spec.nodeName || []))
  const nodes = await Promise.all([...names].map((name) => store.get('nodes', { namespace: '', name })))
  const present = nodes.flatMap((node) => (node !== undefined && mayReportUsage(node) ? node.metadata.name : []))
  await usage.look(present, signal)
  const read = new Map<string, ReadUsage>()
  for (const pod of pods) {
    const used = reportedPodUsage(usage, pod)
    if (used === undefined) continue
    const containers = [...used.containers].map(
      ([name, { cpu, memoryKi }]) => [name, { cpu: Math.ceil(cpu / 1e6), memory: memoryKi * 1024 * 1000 }] as const,
    )
    const { receivedWallMs, windowSeconds } = used.sample
    read.set(pod.metadata.name, {
      timestampMs: receivedWallMs,
      windowMs: windowSeconds * 1000,
      containers: new Map(containers),
    })
  }
  return read
}
