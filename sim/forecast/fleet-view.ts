/** The fleet as the facts of a world show it: workloads with their pods, and machines. Gives what each fact changes. */
import { isDeepStrictEqual } from 'node:util'
import type { Node } from '../../api/node.ts'
import type { Pod } from '../../api/pod.ts'
import type { Fact, StoredBody } from '../story/facts.ts'
import { changesOfPod, type ViewChange, type WorkloadState } from './pod-changes.ts'
import { seenPods } from './seen-pods.ts'
import { textOfWorkload, type WorkloadName, workloadOwners } from './workload-owners.ts'

export interface ForecastView {
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

export function fleetView(): ForecastView {
  const owners = workloadOwners()
  const pods = seenPods()
  const machines = new Map<string, boolean>()
  const shown = new Map<string, WorkloadState>()

  const recount = (name: WorkloadName): readonly ViewChange[] => {
    const key = textOfWorkload(name)
    const wanted = owners.wantedOf(name)
    const before = shown.get(key)
    if (wanted === undefined && !(name.kind === 'Pod' && pods.has(name))) {
      shown.delete(key)
      const gone = before && { ...before, wanted: 0, ready: 0, running: 0 }
      return gone === undefined ? [] : [{ kind: 'workload', workload: gone, before }]
    }
    if (owners.isPart(name)) return []
    const { kind, namespace } = name
    const workload = { kind, namespace, name: name.name, wanted: wanted ?? 1, ...pods.count(name) }
    shown.set(key, workload)
    return isDeepStrictEqual(before, workload) ? [] : [{ kind: 'workload', workload, before }]
  }
  const keepPod = (name: string, pod: Pod): WorkloadName => {
    const workload = owners.topOf(pod)
    pods.keep(name, pod, workload)
    return workload
  }
  const takePod = (name: string, body: string | undefined): readonly ViewChange[] => {
    const before = pods.drop(name)
    const former = before && owners.topOf(before)
    if (body === undefined) return former === undefined ? [] : recount(former)
    const pod = JSON.parse(body) as Pod
    const workload = keepPod(name, pod)
    // A pod that a node brought back after a restore has no owner until one adopts it.
    const isAdopted = former !== undefined && textOfWorkload(former) !== textOfWorkload(workload)
    const earlier = before?.metadata.uid === pod.metadata.uid ? before : undefined
    return [
      ...changesOfPod(pod, earlier, { name, workload }),
      ...recount(workload),
      ...(isAdopted ? recount(former) : []),
    ]
  }
  const takeNode = (machine: string, body: string | undefined): readonly ViewChange[] => {
    const isNowReady = body !== undefined && isNodeReady(JSON.parse(body) as Node)
    const wasReady = machines.get(machine) ?? false
    if (body === undefined) machines.delete(machine)
    else machines.set(machine, isNowReady)
    return isNowReady === wasReady ? [] : [{ kind: 'machine', machine, isReady: isNowReady }]
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
    pods.dropAll()
    machines.clear()
    const names: WorkloadName[] = [...shown.values()]
    const of = (wanted: (resource: string) => boolean) => rows.filter(({ resource }) => wanted(resource))
    for (const { name, body } of of((resource) => resource === 'nodes')) takeNode(name, body)
    for (const { resource, body } of of(owners.isOwner)) names.push(owners.keep(resource, body))
    for (const { namespace, name, body } of of((resource) => resource === 'pods'))
      names.push(keepPod(`${namespace}/${name}`, JSON.parse(body) as Pod))
    return [...new Map(names.map((name) => [textOfWorkload(name), name])).values()].flatMap(recount)
  }
  const takeRun = (podUID: string, containerID: string, isRunning: boolean) => {
    pods.ran(podUID, containerID, isRunning)
    const pod = pods.get(podUID)
    return pod === undefined ? [] : recount(owners.topOf(pod))
  }

  return {
    take(fact) {
      if (fact.kind === 'stored') return takeRow(fact.resource, fact.namespace, fact.name, fact.body)
      if (fact.kind === 'restored') return takeRestore(fact.rows)
      if (fact.kind !== 'started' && fact.kind !== 'ended') return []
      return takeRun(fact.podUID, fact.id, fact.kind === 'started')
    },
    get workloads() {
      return [...shown.values()].sort((a, b) => (textOfWorkload(a) < textOfWorkload(b) ? -1 : 1))
    },
    problemsOf: pods.problemsOf,
    get readyMachines() {
      return [...machines].filter(([, isReady]) => isReady).map(([machine]) => machine)
    },
    podsByMachine: pods.byMachine,
    podOf: pods.get,
  }
}

function isNodeReady({ status }: Node): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
}
