/** The usage of a pod, as metrics.k8s.io shows it and the autoscaler reads it. */
import type { Node } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { ReceivedUsage, UsageBoard, Used } from './usage-board.ts'

/** `cpu` in billionths of a core, `memory` in Ki. */
export type UsedAmounts = { readonly cpu: number; readonly memoryKi: number }

export type ReportedPodUsage = {
  readonly sample: ReceivedUsage
  /** By name; at least one. */
  readonly containers: ReadonlyMap<string, UsedAmounts>
}

/** What the pod used in the newest report of its node; undefined: that is not known. A node may report pods that are bound to it only. */
export function reportedPodUsage(
  usage: Pick<UsageBoard, 'newest'>,
  { metadata, spec }: Pod,
): ReportedPodUsage | undefined {
  const sample = usage.newest(spec.nodeName ?? '')
  const used = sample?.pods.get(metadata.uid ?? '')
  if (sample === undefined || used === undefined) return undefined
  const known = [...used].flatMap(([name, one]) => {
    const amounts = usedAmounts(one)
    return amounts === undefined ? [] : [[name, amounts] as const]
  })
  return known.length === 0 ? undefined : { sample, containers: new Map(known) }
}

/** All or nothing: kubectl would show a missing half as nothing used. */
export function usedAmounts({ cpu, memory }: Used): UsedAmounts | undefined {
  if (cpu === undefined || memory === undefined) return undefined
  return { cpu, memoryKi: Math.ceil(memory / 1024) }
}

/** A node without a connection is not waited for. */
export function mayReportUsage({ status }: Node): boolean {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'Unknown'
}
