/** A control plane of workloads without nodes: the store, the admission and the given controllers. The test plays scheduler and nodes. */
import { isApiError } from '../../api/api-error.ts'
import type { Pod } from '../../api/pod.ts'
import type { BuiltInName } from '../../api/resources.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { type FakeClock, fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { controllerCreation } from '../apiserver/handlers/controller-creation.ts'
import { type ControllerScales, controllerScales } from '../apiserver/handlers/controller-scales.ts'
import { serviceNetwork } from '../apiserver/handlers/service-network.ts'
import { usageLedger } from '../apiserver/quota/quota-ledger.ts'
import { parseYamlBody } from '../apiserver/wire/yaml-body.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { nodeOfDaemon } from '../controllers/workloads/daemons/daemon-placement.ts'
import type { WorkloadNeeds } from '../controllers/workloads/workload-controllers.ts'
import { workloadMetrics } from '../controllers/workloads/workload-metrics.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store, StoredObject, StoredPod } from '../store/store.ts'

type Test = Parameters<typeof quietLog>[0] & { teardown(end: () => Promise<void> | void): void }

export interface WorkloadWorld {
  readonly store: Store
  readonly clock: FakeClock
  readonly needs: WorkloadNeeds
  readonly scales: ControllerScales
  /** Starts the controllers; they end with the test, or when the function is called. */
  start(loops: readonly Loop[]): () => Promise<void>
  /** Lets the controllers do what there is to do: `ms` of time. */
  settle(ms?: number): Promise<void>
  pods(): Promise<readonly StoredPod[]>
  /** `Created pod` and the like: `Reason` of each Event, with its message where `full`. */
  events(): Promise<readonly string[]>
  /** The node that they require, or `pi-01`, runs the pods that are not bound yet; all are ready, except those for which `ready` is false. */
  runPods(ready?: (pod: StoredPod) => boolean): Promise<void>
  /** The pods that are leaving have ended. */
  endPods(): Promise<void>
  /** Writes the object as a client would, by its change. */
  edit<R extends BuiltInName>(
    resource: R,
    name: string,
    change: (object: StoredObject<R>) => StoredObject<R>,
  ): Promise<void>
}

export async function workloadWorld(
  t: Test,
  given: { readonly store?: (store: Store) => Store } = {},
): Promise<WorkloadWorld> {
  const clock = fakeClock()
  const store = memoryStore({ clock, resources: builtInKinds })
  for (const name of ['default', 'kube-system']) {
    await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }
  const log = quietLog(t)
  const seen = given.store?.(store) ?? store
  const admitting = admittingNeeds(seen, clock, log)
  const needs = needsOf(admitting)
  const settle = (ms = 100) => clock.advance(ms)
  const list = async () => (await store.list('pods')).items
  const withStatus = (pod: StoredPod, status: Pod['status']) =>
    store.updateStatus('pods', { ...pod, status: { ...pod.status, ...status } })
  return {
    store,
    clock,
    needs,
    scales: controllerScales(admitting, builtInKinds),
    settle,
    pods: list,
    start(loops) {
      const stop = new AbortController()
      const running = runLoops(loops, stop.signal, log)
      const end = async () => {
        stop.abort()
        await clock.settle()
        await running
      }
      t.teardown(end)
      return end
    },
    async events() {
      return (await store.list('events')).items.map(({ reason }) => reason ?? '')
    },
    async runPods(ready = () => true) {
      for (const pod of await list()) {
        if (pod.metadata.deletionTimestamp !== undefined) continue
        const bound = pod.spec.nodeName
          ? pod
          : await store.update('pods', { ...pod, spec: { ...pod.spec, nodeName: nodeOfDaemon(pod) ?? 'pi-01' } })
        const status = ready(bound) ? 'True' : 'False'
        const before = bound.status?.conditions?.find(({ type }) => type === 'Ready')
        if (before?.status === status) continue
        const condition = { type: 'Ready', status, lastTransitionTime: rfc3339(clock.wallMs()) } as const
        await withStatus(bound, { phase: 'Running', conditions: [condition] })
      }
    },
    async endPods() {
      for (const { metadata } of await list()) {
        if (metadata.deletionTimestamp === undefined) continue
        await store.delete('pods', { namespace: metadata.namespace ?? '', name: metadata.name })
      }
    },
    async edit(resource, name, change) {
      for (let tries = 1; ; tries++) {
        const object = await store.get(resource, { namespace: 'default', name })
        if (object === undefined) throw new Error(`no ${resource} ${name}`)
        try {
          await store.update(resource, change(object) as never)
          return
        } catch (error) {
          // A controller wrote it in the meantime: a client reads it again.
          if (tries === 5 || !isApiError(error, 'Conflict')) throw error
        }
      }
    },
  }
}

/** What the controllers of workloads need over this store; their writes are admitted by the built-in kinds. */
export function workloadNeeds(store: Store, clock: Clock, log: Log): WorkloadNeeds {
  return needsOf(admittingNeeds(store, clock, log))
}

function needsOf(admitting: ReturnType<typeof admittingNeeds>): WorkloadNeeds {
  const { store, events, clock, log } = admitting
  const creation = controllerCreation(admitting, builtInKinds)
  return { store, creation, events, clock, log, workloadMetrics: workloadMetrics(metricsRegistry()) }
}

function admittingNeeds(store: Store, clock: Clock, log: Log) {
  return {
    store,
    access: { decide: async () => ({ allowed: true, reason: '' }) } as never,
    events: eventRecorder({ store, clock }),
    clock,
    log,
    random: Math.random,
    services: serviceNetwork(),
    quotas: usageLedger({ store, kinds: builtInKinds, clock }),
    parseYaml: parseYamlBody,
    commonNameOf: () => undefined,
  }
}
