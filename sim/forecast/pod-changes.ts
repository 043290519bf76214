/** A pod as it is stored, and as it was before → what people see of it. Pure. */
import { learntFromAnnotation } from '../../api/node/node-checkpoint.ts'
import type { Pod } from '../../api/pod.ts'
import type { WorkloadName } from './workload-owners.ts'

export type WorkloadState = WorkloadName & {
  readonly wanted: number
  /** Pods that are ready by the API; of a Job, those that have completed. */
  readonly ready: number
  /** Pods of which a container runs on a machine, whatever the API shows. */
  readonly running: number
}

export type ViewChange =
  | { readonly kind: 'workload'; readonly workload: WorkloadState; readonly before: WorkloadState | undefined }
  | { readonly kind: 'machine'; readonly machine: string; readonly isReady: boolean }
  | {
      readonly kind: 'placed'
      readonly pod: string
      readonly workload: WorkloadName
      readonly machine: string
      /** The machine ran it already, and brought it back after a restore. */
      readonly isBroughtBack: boolean
    }
  | {
      readonly kind: 'evicted'
      readonly pod: string
      readonly workload: WorkloadName
      readonly machine: string
      readonly because: string
    }
  | {
      readonly kind: 'unplaced'
      readonly pod: string
      readonly workload: WorkloadName
      readonly because: string
    }

export function isPodReady({ metadata, status }: Pod): boolean {
  const isMarked = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
  return isMarked && metadata.deletionTimestamp === undefined
}

export function isPodCompleted({ status }: Pod): boolean {
  return status?.phase === 'Succeeded'
}

export function isPodOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

export function unplacedBecause({ spec, status }: Pod): string | undefined {
  if (spec.nodeName !== undefined) return undefined
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  // What follows is about the preemption of other pods.
  return scheduled?.status === 'False' ? scheduled.message?.split(' preemption: ')[0] : undefined
}

const evictions: { readonly [reason: string]: string } = {
  DeletionByTaintManager: 'its machine is not ready',
  EvictionByEvictionAPI: 'drain',
  PreemptionByScheduler: 'a pod of a higher priority needs its place',
  TerminationByKubelet: 'its machine has too few resources',
}

function evictedBecause({ metadata, status }: Pod): string | undefined {
  if (metadata.deletionTimestamp === undefined && status?.phase !== 'Failed') return undefined
  const target = status?.conditions?.find(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True')
  return target === undefined ? undefined : (evictions[target.reason ?? ''] ?? target.reason)
}

type PodNames = { readonly name: string; readonly workload: WorkloadName }

export function changesOfPod(pod: Pod, before: Pod | undefined, { name, workload }: PodNames): readonly ViewChange[] {
  const machine = pod.spec.nodeName
  const isPlaced = machine !== undefined && before?.spec.nodeName === undefined
  const isLearnt = pod.metadata.annotations?.[learntFromAnnotation] !== undefined
  const evicted = evictedBecause(pod)
  const unplaced = unplacedBecause(pod)
  return [
    ...(isPlaced ? [{ kind: 'placed' as const, pod: name, workload, machine, isBroughtBack: isLearnt }] : []),
    ...(evicted !== undefined && machine !== undefined && (before === undefined || evictedBecause(before) === undefined)
      ? [{ kind: 'evicted' as const, pod: name, workload, machine, because: evicted }]
      : []),
    ...(unplaced !== undefined && (before === undefined || unplacedBecause(before) === undefined)
      ? [{ kind: 'unplaced' as const, pod: name, workload, because: unplaced }]
      : []),
  ]
}
