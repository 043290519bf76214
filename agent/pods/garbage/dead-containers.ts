/** Selects the stopped containers and sandboxes to remove, in the order of pkg/kubelet/kuberuntime/kuberuntime_gc.go. */
import { compareInstants } from '../../../daemon/clock.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { isRunning } from '../record/pod-containers.ts'

export type DeadContainerPolicy = {
  /** Minimum age since the creation. */
  readonly minAgeMs: number
  /** Maximum per container of a pod; below 0: no limit. */
  readonly maxPerPodContainer: number
  /** Maximum on the whole machine; below 0: no limit. */
  readonly maxContainers: number
}

/** `needed`: its pod is to run; `over`: its pod has ended and is still shown; `gone`: no such pod is desired. */
export type PodNeed = 'needed' | 'over' | 'gone'

export type DeadContainerFacts = {
  readonly containers: readonly RuntimeContainer[]
  readonly needOf: (podUID: string) => PodNeed
  readonly nowWallMs: number
  /** The disk is full: containers of ended pods are removed too. */
  readonly short: boolean
}

/** The containers to remove, the oldest first, then the sandboxes without containers. */
export function deadContainers(policy: DeadContainerPolicy, facts: DeadContainerFacts): readonly RuntimeContainer[] {
  const removed = new Set(containersToRemove(policy, facts))
  return [...removed, ...sandboxesToRemove(facts, removed)]
}

function containersToRemove(policy: DeadContainerPolicy, facts: DeadContainerFacts): readonly RuntimeContainer[] {
  const old = facts.containers.filter((one) => isOldEnough(one, policy.minAgeMs, facts.nowWallMs))
  const unneeded = old.filter((one) => isUnneeded(one, facts))
  const kept = unitsOf(old.filter((one) => !isUnneeded(one, facts)))
  const perUnit = kept.flatMap((unit) => beyond(unit, policy.maxPerPodContainer))
  const left = kept.map((unit) => unit.filter((one) => !perUnit.includes(one)))
  return [...oldestFirst(unneeded), ...oldestFirst(perUnit), ...beyondTotal(left, policy.maxContainers)]
}

/**
 * Each container's excess over an equal share (enforceMaxContainersPerEvictUnit in pkg/kubelet/kuberuntime/kuberuntime_gc.go).
 * The kubelet then removes even the newest instances. Here they stay: without one, the container would run again.
 */
function beyondTotal(units: readonly (readonly RuntimeContainer[])[], maxContainers: number) {
  if (maxContainers < 0 || units.flat().length <= maxContainers) return []
  const share = Math.max(1, Math.floor(maxContainers / units.length))
  return oldestFirst(units.flatMap((unit) => beyond(unit, share)))
}

/** The newest one is kept regardless of the limit: the plan reads from it how the container ended. */
function beyond(unit: readonly RuntimeContainer[], limit: number): readonly RuntimeContainer[] {
  return limit < 0 ? [] : unit.slice(Math.max(1, limit))
}

/** Keeps the newest sandbox of a pod, or none if the pod is not needed. */
function sandboxesToRemove(facts: DeadContainerFacts, removed: ReadonlySet<RuntimeContainer>) {
  const used = new Set(facts.containers.filter((one) => !removed.has(one)).map(({ sandboxID }) => sandboxID))
  const newest = newestSandboxes(facts.containers)
  return oldestFirst(
    facts.containers.filter(
      (one) =>
        one.identity.kind === 'sandbox' &&
        !isRunning(one) &&
        !used.has(one.id) &&
        (isUnneeded(one, facts) || !newest.has(one)),
    ),
  )
}

function newestSandboxes(containers: readonly RuntimeContainer[]): ReadonlySet<RuntimeContainer> {
  const byPod = new Map<string, RuntimeContainer>()
  for (const one of containers.filter(({ identity }) => identity.kind === 'sandbox')) {
    const other = byPod.get(one.identity.podUID)
    if (other === undefined || newestFirst(one, other) < 0) byPod.set(one.identity.podUID, one)
  }
  return new Set(byPod.values())
}

function isUnneeded({ identity }: RuntimeContainer, { needOf, short }: DeadContainerFacts): boolean {
  const need = needOf(identity.podUID)
  return need === 'gone' || (short && need === 'over')
}

/**
 * With a minimum age of 0, containers with a creation time in the future also qualify: the clock was set back after their
 * creation.
 */
function isOldEnough({ identity, createdAt, ...one }: RuntimeContainer, minAgeMs: number, nowWallMs: number): boolean {
  if (identity.kind === 'sandbox' || one.state === 'running' || one.state === 'paused' || one.state === 'restarting') {
    return false
  }
  return minAgeMs === 0 || nowWallMs - Date.parse(createdAt) >= minAgeMs
}

/** The dead instances of each container of each pod, newest first. */
function unitsOf(containers: readonly RuntimeContainer[]): readonly (readonly RuntimeContainer[])[] {
  const units = new Map<string, RuntimeContainer[]>()
  for (const one of [...containers].sort(newestFirst)) {
    const key = `${one.identity.podUID} ${one.identity.containerName}`
    units.set(key, [...(units.get(key) ?? []), one])
  }
  return [...units.values()]
}

/** Order of one pod's containers. The attempt counts first: the clock may have been set back between two attempts. */
function newestFirst(a: RuntimeContainer, b: RuntimeContainer): number {
  return b.identity.attempt - a.identity.attempt || compareInstants(b.createdAt, a.createdAt)
}

function oldestFirst(containers: readonly RuntimeContainer[]): readonly RuntimeContainer[] {
  return [...containers].sort((a, b) => compareInstants(a.createdAt, b.createdAt))
}
