/**
 * The order and the time in which pods stop: by priority, the lowest first
 * (pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go).
 */
import { systemCriticalPriority } from '../../api/pod/critical-pod.ts'
import type { Pod } from '../../api/pod.ts'

export type ShutdownSettings = {
  /** Time for all pods together; 0: the agent does not stop them; undefined: all that logind grants. */
  readonly graceMs: number | undefined
  /** The part of it for critical pods; undefined: a third. */
  readonly criticalMs: number | undefined
  /** Replaces both; empty: not configured. */
  readonly byPriority: readonly Share[]
}

/** For pods of this priority and above, up to the next share. */
export type Share = { readonly priority: number; readonly graceMs: number }

export type StopGroup = {
  readonly graceMs: number
  readonly pods: readonly { readonly uid: string; readonly gracePeriodSeconds: number }[]
}

/** As in the kubelet's documentation: 10 s of 30 are for critical pods. */
const criticalPart = 1 / 3

/** Part of the granted time for the agent itself: to observe that all containers ended, to report it and to disconnect. */
export const ownMs = 1_000

/** Part of the granted time for the pods: at least half, so that pods get a part of a short delay too. */
export function usableMs(grantedMs: number): number {
  return Math.max(grantedMs / 2, grantedMs - ownMs)
}

export function isShutdownOff({ graceMs, byPriority }: ShutdownSettings): boolean {
  return byPriority.length > 0 ? totalMs(byPriority) === 0 : graceMs === 0
}

/** The configured time, independent of what logind grants; undefined: none is configured. */
export function wantedMs({ graceMs, byPriority }: ShutdownSettings): number | undefined {
  return byPriority.length > 0 ? totalMs(byPriority) : graceMs
}

/** The lowest priority first. If more than `haveMs` is configured, all shares are shortened by the same factor, to whole seconds. */
export function sharesOf(settings: ShutdownSettings, haveMs: number): readonly Share[] {
  const wanted = wantedShares(settings, haveMs)
  const sum = totalMs(wanted)
  if (sum <= haveMs) return wanted
  return wanted.map(({ priority, graceMs }) => ({ priority, graceMs: wholeSeconds((graceMs * haveMs) / sum) }))
}

function wantedShares({ graceMs, criticalMs, byPriority }: ShutdownSettings, haveMs: number): readonly Share[] {
  if (byPriority.length > 0) return byPriority.toSorted((a, b) => a.priority - b.priority)
  const allMs = graceMs ?? wholeSeconds(haveMs)
  const forCriticalMs = Math.min(allMs, criticalMs ?? wholeSeconds(allMs * criticalPart))
  return [
    { priority: 0, graceMs: allMs - forCriticalMs },
    { priority: systemCriticalPriority, graceMs: forCriticalMs },
  ]
}

/** In order. A pod below the lowest share belongs to the lowest; groups without pods are left out. */
export function stopGroups(shares: readonly Share[], pods: readonly Pod[]): readonly StopGroup[] {
  const shareFor = ({ spec }: Pod) => shares.findLast(({ priority }) => priority <= (spec.priority ?? 0)) ?? shares[0]
  return shares.flatMap((share) => {
    const own = pods.filter((pod) => shareFor(pod) === share)
    return own.length === 0 ? [] : [{ graceMs: share.graceMs, pods: own.map((pod) => stopOf(pod, share)) }]
  })
}

function stopOf({ metadata, spec }: Pod, { graceMs }: Share): StopGroup['pods'][number] {
  const shareSeconds = Math.floor(graceMs / 1000)
  const own = spec.terminationGracePeriodSeconds ?? shareSeconds
  return { uid: metadata.uid ?? '', gracePeriodSeconds: Math.min(own, shareSeconds) }
}

export function totalMs(shares: readonly Share[]): number {
  return shares.reduce((sum, { graceMs }) => sum + graceMs, 0)
}

function wholeSeconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000) * 1000)
}
