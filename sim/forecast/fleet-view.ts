/** The fleet as the facts of a world show it: workloads with their pods, and machines. Gives what each fact changes. */
import type { Node } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { Fact, StoredBody } from '../story/facts.ts'
import {
  changesOfPod,
  isPodCompleted,
  isPodOver,
  isPodReady,
  unplacedBecause,
  type ViewChange,
  type WorkloadState,
} from './pod-changes.ts'
import { textOfWorkload, type WorkloadName, workloadOwners } from './workload-owners.ts'

export interface FleetView {
  take(fact: Fact): readonly ViewChange[]
  readonly workloads: readonly WorkloadState[]
  /** Why pods of it are not on a machine. */
  problemsOf(workload: WorkloadName): readonly string[]
  readonly readyMachines: readonly string[]
  /** How many pods that are not over each machine has by the API. */
  podsByMachine(): ReadonlyMap<string, number>
  /** The pod with this uid. */
  podOf(uid: string): Pod | undefined
}

type SeenPod = { readonly pod: Pod; readonly workload: string }

export function fleetView(): FleetView {
  const owners = workloadOwners()
  const pods = new Map<string, SeenPod>()
  const podUIDs = new Map<string, string>()
  const machines = new Map<string, boolean>()
  /** Ids of the containers that run, by the uid of their pod. */
  const running = new Map<string, ReadonlySet<string>>()
  const shown = new Map<string, WorkloadState>()

  const stateOf = (key: string, name: WorkloadName, wanted: number): WorkloadState => {
    const own = [...pods.values()].filter(({ workload }) => workload === key)
    const counts = own.filter(({ pod }) => (name.kind === 'Job' ? isPodCompleted(pod) : isPodReady(pod)))
    const runs = own.filter(({ pod }) => (running.get(pod.metadata.uid ?? '')?.size ?? 0) > 0)
    return { ...name, wanted, ready: counts.length, running: runs.length }
  }
  const recount = (name: WorkloadName): readonly ViewChange[] => {
    const key = textOfWorkload(name)
    const wanted = owners.wantedOf(name)
    const isPod = name.kind === 'Pod' && [...pods.values()].some(({ workload }) => workload === key)
    const before = shown.get(key)
    if (wanted === undefined && !isPod) {
      shown.delete(key)
      return before === undefined
        ? []
        : [{ kind: 'workload', workload: { ...before, wanted: 0, ready: 0, running: 0 }, before }]
    }
    if (owners.isPart(name)) return []
    const workload = stateOf(key, name, wanted ?? 1)
    shown.set(key, workload)
    const isSame =
      before?.wanted === workload.wanted && before.ready === workload.ready && before.running === workload.running
    return isSame ? [] : [{ kind: 'workload', workload, before }]
  }

  const keepPod = (name: string, pod: Pod): WorkloadName => {
    const { uid = '' } = pod.metadata
    const top = owners.topOf(pod)
    podUIDs.set(name, uid)
    pods.set(uid, { pod, workload: textOfWorkload(top) })
    return top
  }
  const takePod = (name: string, body: string | undefined): readonly ViewChange[] => {
    const uidBefore = podUIDs.get(name) ?? ''
    const before = pods.get(uidBefore)?.pod
    const former = before && owners.topOf(before)
    pods.delete(uidBefore)
    podUIDs.delete(name)
    if (body === undefined) return former === undefined ? [] : recount(former)
    const pod = JSON.parse(body) as Pod
    const workload = keepPod(name, pod)
    // A pod that a node brought back after a restore has no owner until one adopts it.
    const isAdopted = former !== undefined && textOfWorkload(former) !== textOfWorkload(workload)
    const earlier = uidBefore === pod.metadata.uid ? before : undefined
    return [
      ...changesOfPod(pod, earlier, { name, workload }),
      ...recount(workload),
      ...(isAdopted ? recount(former) : []),
    ]
  }
  const takeNode = (machine: string, body: string | undefined): readonly ViewChange[] => {
    const isNowReady = body !== undefined && isNodeReady(JSON.parse(body) as Node)
    const wasReady = machines.get(machine)
    if (body === undefined) machines.delete(machine)
    else machines.set(machine, isNowReady)
    return isNowReady === (wasReady ?? false) ? [] : [{ kind: 'machine', machine, isReady: isNowReady }]
  }
  const takeRow = (resource: string, namespace: string, name: string, body: string | undefined) => {
    if (resource === 'pods') return takePod(`${namespace}/${name}`, body)
    if (resource === 'nodes') return takeNode(name, body)
    if (!owners.isOwner(resource)) return []
    return recount(body === undefined ? owners.forget(resource, namespace, name) : owners.keep(resource, body))
  }
  /** What the store had is gone, and what the backup has is not new: only the counts change. */
  const takeRestore = (rows: readonly StoredBody[]): readonly ViewChange[] => {
    owners.forgetAll()
    pods.clear()
    podUIDs.clear()
    machines.clear()
    const names: WorkloadName[] = [...shown.values()]
    const of = (wanted: (resource: string) => boolean) => rows.filter(({ resource }) => wanted(resource))
    for (const { name, body } of of((resource) => resource === 'nodes')) takeNode(name, body)
    for (const { resource, body } of of(owners.isOwner)) names.push(owners.keep(resource, body))
    for (const { namespace, name, body } of of((resource) => resource === 'pods'))
      names.push(keepPod(`${namespace}/${name}`, JSON.parse(body) as Pod))
    return [...new Map(names.map((name) => [textOfWorkload(name), name])).values()].flatMap(recount)
  }
  const takeRun = (podUID: string, change: (ids: ReadonlySet<string>) => ReadonlySet<string>) => {
    running.set(podUID, change(running.get(podUID) ?? new Set()))
    const pod = pods.get(podUID)?.pod
    return pod === undefined ? [] : recount(owners.topOf(pod))
  }

  return {
    take(fact) {
      switch (fact.kind) {
        case 'stored':
          return takeRow(fact.resource, fact.namespace, fact.name, fact.body)
        case 'restored':
          return takeRestore(fact.rows)
        case 'started':
          return takeRun(fact.podUID, (ids) => new Set([...ids, fact.id]))
        case 'ended':
          return takeRun(fact.podUID, (ids) => new Set([...ids].filter((id) => id !== fact.id)))
        default:
          return []
      }
    },
    get workloads() {
      return [...shown.values()].sort((a, b) => (textOfWorkload(a) < textOfWorkload(b) ? -1 : 1))
    },
    problemsOf(name) {
      const own = [...pods.values()].filter(({ workload }) => workload === textOfWorkload(name))
      return [...new Set(own.flatMap(({ pod }) => unplacedBecause(pod) ?? []))]
    },
    get readyMachines() {
      return [...machines].filter(([, isReady]) => isReady).map(([machine]) => machine)
    },
    podsByMachine() {
      const counts = new Map<string, number>()
      for (const { pod } of pods.values()) {
        const { nodeName } = pod.spec
        if (nodeName !== undefined && !isPodOver(pod)) counts.set(nodeName, (counts.get(nodeName) ?? 0) + 1)
      }
      return counts
    },
    podOf: (uid) => pods.get(uid)?.pod,
  }
}

function isNodeReady({ status }: Node): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
}
