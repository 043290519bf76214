/**
 * How the containers of a pod ended that its restart policy does not start again. Users remove stopped containers from the engine
 * (`docker container prune`): a container whose end is not remembered would run again.
 */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { ContainerEnd } from '../wanted/container-end.ts'
import { containersOf, exitCodeOf, hasEnded, restartPolicyFor, sortContainers } from './pod-containers.ts'
import { shouldRestart } from './restarts.ts'

/** By container name. */
export type ContainerEnds = ReadonlyMap<string, ContainerEnd>

export type EndFacts = {
  readonly ends: ContainerEnds
  /** By container id. */
  readonly replacing: ReadonlySet<string>
  readonly terminationMessages: ReadonlyMap<string, string>
}

/** The ends known after these containers were listed. The same map if nothing is new. */
export function endsAfter(pod: Pod, facts: EndFacts, listed: readonly RuntimeContainer[]): ContainerEnds {
  const { histories } = sortContainers(listed)
  const next = new Map(facts.ends)
  for (const container of containersOf(pod)) {
    const { name } = container
    const newest = histories.get(name)?.[0]
    const known = facts.ends.get(name)
    if (newest === undefined || newest.id === known?.id) continue
    const mayRunAgain =
      !hasEnded(newest) ||
      facts.replacing.has(newest.id) ||
      shouldRestart(restartPolicyFor(pod, container), exitCodeOf(newest))
    if (mayRunAgain) next.delete(name)
    else next.set(name, endOf(newest, facts.terminationMessages.get(newest.id) ?? ''))
  }
  const isSame = next.size === facts.ends.size && [...next].every(([name, end]) => facts.ends.get(name) === end)
  return isSame ? facts.ends : next
}

function endOf(container: RuntimeContainer, message: string): ContainerEnd {
  const { id, identity, sandboxID, image, imageID, state, exitCode, oomKilled, error, createdAt } = container
  const { startedAt, finishedAt } = container
  return {
    name: identity.containerName,
    id,
    ...(sandboxID !== undefined && { sandboxID }),
    specHash: identity.specHash,
    attempt: identity.attempt,
    image,
    imageID,
    state: state === 'created' ? state : 'exited',
    exitCode,
    oomKilled,
    error,
    message,
    createdAt,
    ...(startedAt !== undefined && { startedAt }),
    ...(finishedAt !== undefined && { finishedAt }),
  }
}

/**
 * The containers listed, and as stopped containers those that ended and were removed since. The latter are the only instance of
 * their name, and their name is in the specification: a plan that removes older instances or unknown containers skips them.
 */
export function withEnds(
  pod: Pod,
  ends: ContainerEnds,
  listed: readonly RuntimeContainer[],
): readonly RuntimeContainer[] {
  if (ends.size === 0) return listed
  const present = new Set(listed.map(({ identity }) => identity.containerName))
  const removed = containersOf(pod).flatMap(({ name }) => (present.has(name) ? [] : (ends.get(name) ?? [])))
  return [...listed, ...removed.map((end) => stoppedContainer(pod, end))]
}

function stoppedContainer({ metadata }: Pod, end: ContainerEnd): RuntimeContainer {
  const { name, specHash, attempt, sandboxID, startedAt, finishedAt, message: _, ...observed } = end
  const { namespace = 'default', name: podName = '', uid = '' } = metadata
  return {
    ...observed,
    identity: {
      kind: 'container',
      podNamespace: namespace,
      podName,
      podUID: uid,
      containerName: name,
      attempt,
      specHash,
      gracePeriodSeconds: 0,
    },
    sandboxID,
    startedAt,
    finishedAt,
    ip: undefined,
  }
}

/** The termination messages of these ends, by container id. */
export function endMessages(ends: ContainerEnds): readonly (readonly [string, string])[] {
  return [...ends.values()].map(({ id, message }) => [id, message])
}
