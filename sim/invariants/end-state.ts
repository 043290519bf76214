/** After the faults everything matches the manifests, and nothing is left over. */
import type { RuntimeContainer } from '../../agent/runtime/runtime.ts'
import type { Node } from '../../api/node.ts'
import { secretsOf } from '../../api/pod/pod-references.ts'
import type { Pod } from '../../api/pod.ts'
import { secretsIn } from '../people/secrets.ts'
import type { Workload } from '../people/workloads.ts'

export type EndState = {
  readonly wanted: readonly Workload[]
  /** What is stored, by kind. */
  readonly stored: (resource: string) => readonly StoredThing[]
  readonly machines: readonly EndOfMachine[]
  /**
   * A backup replaced the store: a Job whose pods were made since the backup may have made others, and data that a claim got since the backup
   * is kept for a person, who decides about it.
   */
  readonly isRestored?: boolean
}

export type EndOfMachine = {
  readonly node: string
  readonly containers: readonly RuntimeContainer[]
  /** The uids of pods that have folders on it. */
  readonly podFolders: readonly string[]
  /** The contents of the files of its agent. */
  readonly files: readonly string[]
}

type StoredEvent = StoredThing & {
  readonly reason?: string
  readonly message?: string
  readonly involvedObject?: { readonly name?: string }
}

export type StoredThing = {
  readonly metadata: { readonly name: string; readonly uid?: string; readonly deletionTimestamp?: string }
  readonly spec?: unknown
  readonly status?: unknown
}

type Counts = { readonly [name: string]: number | undefined }

/** What is not yet as it should be. */
export function endProblems({ wanted, stored, machines, isRestored = false }: EndState): readonly string[] {
  const pods = stored('pods') as readonly (Pod & StoredThing)[]
  const kept = new Set(isRestored ? keptVolumes(stored('events')) : [])
  return [
    ...wanted.flatMap((workload) => workloadProblems(workload, stored(workload.resource), isRestored)),
    ...['deployments', 'statefulsets', 'jobs'].flatMap((resource) => unwanted(resource, wanted, stored(resource))),
    ...(stored('nodes') as readonly (Node & StoredThing)[]).flatMap(nodeProblems),
    ...pods.flatMap(podProblems),
    ...leavingProblems('persistentvolumeclaims', stored('persistentvolumeclaims')),
    ...leavingProblems(
      'persistentvolumes',
      stored('persistentvolumes').filter(({ metadata }) => !kept.has(metadata.name)),
    ),
    ...machines.flatMap((machine) => machineProblems(machine, pods)),
  ]
}

function workloadProblems(
  { resource, name, manifest }: Workload,
  present: readonly StoredThing[],
  isRestored: boolean,
): readonly string[] {
  const found = present.find(({ metadata }) => metadata.name === name)
  if (found === undefined) return [`${resource} ${name} is missing`]
  const [spec, status] = [found.spec as Counts, found.status as Counts | undefined]
  if (resource === 'jobs') {
    const completions = Number(manifest.spec['completions'])
    const succeeded = status?.['succeeded'] ?? 0
    return succeeded === completions || (isRestored && succeeded > completions)
      ? []
      : [`job ${name}: ${succeeded} of ${completions} completed`]
  }
  const replicas = Number(manifest.spec['replicas'])
  return [
    ...(spec['replicas'] === replicas
      ? []
      : [`${resource} ${name}: ${spec['replicas']} replicas, ${replicas} were asked for`]),
    ...['replicas', 'readyReplicas', 'availableReplicas', 'updatedReplicas'].flatMap((field) => {
      const count = status?.[field] ?? 0
      return count === replicas ? [] : [`${resource} ${name}: ${field} is ${count} of ${replicas}`]
    }),
  ]
}

function unwanted(resource: string, wanted: readonly Workload[], present: readonly StoredThing[]): readonly string[] {
  return present
    .filter(({ metadata }) => !wanted.some((one) => one.resource === resource && one.name === metadata.name))
    .map(({ metadata }) => `${resource} ${metadata.name} was deleted, and is there`)
}

function nodeProblems({ metadata, spec, status }: Node & StoredThing): readonly string[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return [
    ...(ready === 'True' ? [] : [`node ${metadata.name}: Ready is ${ready}`]),
    ...(spec?.taints ?? []).map(({ key }) => `node ${metadata.name} has the taint ${key}`),
  ]
}

function leavingProblems(resource: string, present: readonly StoredThing[]): readonly string[] {
  return present
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(({ metadata }) => `${resource} ${metadata.name} is being deleted`)
}

/** Names of the volumes whose data the node does not delete, because another claim of that name has used it since. */
function keptVolumes(events: readonly StoredEvent[]): readonly string[] {
  return events.flatMap(({ reason, message = '', involvedObject }) =>
    reason === 'VolumeFailedDelete' && message.endsWith('has used it since') ? (involvedObject?.name ?? []) : [],
  )
}

function podProblems({ metadata, spec, status }: Pod & StoredThing): readonly string[] {
  if (metadata.deletionTimestamp !== undefined) return [`pod ${metadata.name} is being deleted`]
  if (spec.nodeName === undefined) return [`pod ${metadata.name} has no node`]
  const { phase } = status ?? {}
  return phase === 'Running' || phase === 'Succeeded' || phase === 'Failed' ? [] : [`pod ${metadata.name} is ${phase}`]
}

function machineProblems(
  { node, containers, podFolders, files }: EndOfMachine,
  pods: readonly (Pod & StoredThing)[],
): readonly string[] {
  const here = pods.filter(({ spec }) => spec.nodeName === node)
  const isHere = (podUID: string) => here.some(({ metadata }) => metadata.uid === podUID)
  const named = new Set(here.flatMap((pod) => [...secretsOf(pod)]))
  const secrets = new Set(files.flatMap(secretsIn))
  return [
    ...containerProblems(node, containers, here),
    ...podFolders.filter((uid) => !isHere(uid)).map((uid) => `${node}: a folder of pod ${uid} is left over`),
    ...[...secrets].filter((name) => !named.has(name)).map((name) => `${node}: a file has Secret ${name}`),
  ]
}

function containerProblems(
  node: string,
  found: readonly RuntimeContainer[],
  here: readonly (Pod & StoredThing)[],
): readonly string[] {
  const strays = found
    .filter(({ identity }) => !here.some(({ metadata }) => metadata.uid === identity.podUID))
    .map(
      ({ identity, state }) =>
        `${node}: container ${identity.containerName || 'sandbox'} (${state}) of pod ${identity.podName} is left over`,
    )
  const missing = here.flatMap(({ metadata, status }) => {
    const running = found.filter(
      ({ identity, state }) => identity.podUID === metadata.uid && identity.kind === 'container' && state === 'running',
    )
    const expected = status?.phase === 'Running' ? 1 : 0
    return running.length === expected
      ? []
      : [`${node}: ${running.length} running containers of pod ${metadata.name}, which is ${status?.phase}`]
  })
  return [...strays, ...missing]
}
