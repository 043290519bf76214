/** The workloads of a fleet: what has pods, and what a ReplicaSet or a Job is a part of. */
import type { OwnerReference } from '../../api/meta.ts'
import type { Pod } from '../../api/pod.ts'

export type WorkloadName = { readonly kind: string; readonly namespace: string; readonly name: string }

type Owner = { readonly name: WorkloadName; readonly wanted: number; readonly owner: OwnerReference | undefined }
/** Kinds that have pods, and how many they want. */
const kinds: { readonly [resource: string]: (object: Counted) => number | undefined } = {
  deployments: ({ spec }) => spec?.replicas ?? 1,
  replicasets: ({ spec }) => spec?.replicas ?? 1,
  replicationcontrollers: ({ spec }) => spec?.replicas ?? 1,
  statefulsets: ({ spec }) => spec?.replicas ?? 1,
  daemonsets: ({ status }) => status?.desiredNumberScheduled ?? 0,
  jobs: ({ spec }) => spec?.completions ?? 1,
}

type Counted = {
  readonly kind: string
  readonly metadata: Pod['metadata']
  readonly spec?: { readonly replicas?: number; readonly completions?: number }
  readonly status?: { readonly desiredNumberScheduled?: number }
}

const kindNames: { readonly [resource: string]: string } = {
  deployments: 'Deployment',
  replicasets: 'ReplicaSet',
  replicationcontrollers: 'ReplicationController',
  statefulsets: 'StatefulSet',
  daemonsets: 'DaemonSet',
  jobs: 'Job',
}

export function textOfWorkload({ kind, namespace, name }: WorkloadName): string {
  return `${kind} ${namespace}/${name}`
}

export interface WorkloadOwners {
  isOwner(resource: string): boolean
  /** The object is there, as it is stored. */
  keep(resource: string, body: string): WorkloadName
  forget(resource: string, namespace: string, name: string): WorkloadName
  forgetAll(): void
  /** The workload at the top of the owners of a pod: a Deployment, and not its ReplicaSet. */
  topOf(pod: Pod): WorkloadName
  /** How many pods it wants; undefined: it is not there. */
  wantedOf(workload: WorkloadName): number | undefined
  /** It belongs to one that is there, as a ReplicaSet to its Deployment. */
  isPart(workload: WorkloadName): boolean
}

export function workloadOwners(): WorkloadOwners {
  const owners = new Map<string, Owner>()
  const find = (workload: WorkloadName) =>
    [...owners.values()].find(({ name }) => textOfWorkload(name) === textOfWorkload(workload))
  return {
    isOwner: (resource) => kinds[resource] !== undefined,
    keep(resource, body) {
      const object = JSON.parse(body) as Counted
      const { uid = '', namespace = '', name = '' } = object.metadata
      const own = { kind: object.kind, namespace, name }
      owners.set(uid, { name: own, wanted: kinds[resource]?.(object) ?? 0, owner: controllerOf(object.metadata) })
      return own
    },
    forget(resource, namespace, name) {
      const own = { kind: kindNames[resource] ?? '', namespace, name }
      for (const [uid, owner] of owners) if (textOfWorkload(owner.name) === textOfWorkload(own)) owners.delete(uid)
      return own
    },
    forgetAll: () => owners.clear(),
    topOf({ metadata }) {
      let reference = controllerOf(metadata)
      let top: WorkloadName = { kind: 'Pod', namespace: metadata.namespace ?? '', name: metadata.name ?? '' }
      while (reference !== undefined) {
        const found: Owner | undefined = owners.get(reference.uid)
        top = found?.name ?? { kind: reference.kind, namespace: top.namespace, name: reference.name }
        reference = found?.owner
      }
      return top
    },
    wantedOf: (workload) => find(workload)?.wanted,
    isPart(workload) {
      const owner = find(workload)?.owner
      return owner !== undefined && owners.has(owner.uid)
    },
  }
}

function controllerOf({ ownerReferences = [] }: Pod['metadata']): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller === true)
}
