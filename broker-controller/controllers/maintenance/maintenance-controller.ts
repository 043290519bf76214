/** Loop: has the machines of the fleet upgraded and restarted, as `next-maintenance.ts` decides, and evicts the pods of those that drain. */
import { isMaintenanceMap, isMaintenancePausedByOperator, maintenanceKey } from '../../../api/node/fleet-maintenance.ts'
import type { EvictedPod, EvictionAnswer } from '../../../api/pod/eviction-answer.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type Informer, informer } from '../../store/informer.ts'
import { nodeReference, objectReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject, StoredPod } from '../../store/store.ts'
import { addressesOfControllers } from '../rollouts/controller-addresses.ts'
import { type DrainPods, drainPods, nextEvictions } from './drain-pods.ts'
import type { MaintenanceMetrics } from './maintenance-metrics.ts'
import { maintenanceData, readMaintenance, type StoredMaintenance } from './maintenance-object.ts'
import { usualMaintenance } from './maintenance-rules.ts'
import { type MaintenancePlan, type MaintenanceState, nextMaintenance } from './next-maintenance.ts'
import { maintenanceFactsOf, maintenanceNode, withStep } from './node-facts.ts'
import { isUnderMaintenance, type MaintenanceNode, type NodeStep } from './node-step.ts'

export type MaintenanceNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly metrics: MaintenanceMetrics
  /** By the eviction subresource of the API. Never rejects. */
  readonly evict: (pod: EvictedPod, signal: AbortSignal) => Promise<EvictionAnswer>
  readonly clock: Clock
  readonly log: Log
}

/** Changes of the fleet are collected: a decision is about all of its nodes. */
const collectMs = 1_000
const idleMs = 300_000
/** Between two attempts of an eviction that a budget does not allow yet. */
const drainMs = 5_000
const writesAtOnce = 16

export function maintenanceController(needs: MaintenanceNeeds): Loop {
  return { name: 'maintenance', run: (signal) => runMaintenance(needs, signal) }
}

async function runMaintenance(needs: MaintenanceNeeds, signal: AbortSignal): Promise<void> {
  const { store, events, metrics, clock, log } = needs
  const bell = alarm(clock)
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined || previous === undefined || maintenanceFactsOf(present) !== maintenanceFactsOf(previous))
      bell.ring()
  })
  let draining: DrainPods = new Map()
  const pods = informer({ store, clock, log }, 'pods', (present, previous) => {
    if (present === undefined && draining.has(previous?.spec.nodeName ?? '')) bell.ring()
  })
  const maps = informer({ store, clock, log }, 'configmaps', (present, previous) => {
    const map = present ?? previous
    if (map !== undefined && isMaintenanceMap(map)) bell.ring()
  })
  let refused: string | undefined
  let held: ReadonlySet<string> = new Set()
  const { carryOut, save } = maintenanceWrites(needs, nodes, maps)

  /** What was started. Where the object is gone or cannot be used, those that are under maintenance finish, and none begins. */
  const stored = (map: StoredObject<'configmaps'> | undefined): StoredMaintenance | undefined => {
    const found = map && readMaintenance(map, clock.wallMs())
    if (typeof found === 'string' && found !== refused)
      log.error('The maintenance of machines cannot be used', { because: found })
    refused = typeof found === 'string' ? found : undefined
    return typeof found === 'object' ? found : undefined
  }

  const membersNow = async (): Promise<readonly MaintenanceNode[]> => {
    const addresses = await addressesOfControllers(store)
    const all = [...nodes.all()]
    draining = await drainPods(all, () => {
      // A pod that was bound before the cordon counts.
      pods.catchUp()
      return [...pods.all()]
    })
    const members: MaintenanceNode[] = []
    await eachInTurns(all, (node) => {
      members.push(maintenanceNode(node, addresses, draining.get(node.metadata.name)?.map(nameOf) ?? []))
    })
    return members
  }

  const announce = async (map: StoredObject<'configmaps'>, before: MaintenanceState, plan: MaintenancePlan) => {
    metrics.show({ status: plan.status, isPausedByOperator: isMaintenancePausedByOperator(map) })
    const isSaved = await save(map, plan)
    if (!isSaved || before.paused !== undefined || plan.state.paused === undefined) return
    log.warn('The maintenance of machines pauses', { because: plan.state.paused })
    const message = `${plan.state.paused}. Resume with bramble-controller maintenance resume`
    const event = { type: 'Warning', reason: 'MaintenancePaused', message, component } as const
    await events.record({ object: objectReference(map), ...event })
  }

  /** When to decide again at the latest. */
  const pass = async (): Promise<number> => {
    const map = maps.get(maintenanceKey)
    const found = stored(map)
    const members = await membersNow()
    if (found === undefined) metrics.show(undefined)
    if (found === undefined && !members.some(isUnderMaintenance)) return idleMs
    const { rules, state } = found ?? { rules: usualMaintenance, state: { paused: notStarted } }
    const plan = nextMaintenance(state, { rules, nodes: members, nowMs: clock.wallMs() })
    await carryOut(plan.steps)
    // A node that has just ended its drain may have its pods again.
    const decided = new Set(plan.steps.map(({ node }) => node))
    const stillDraining = new Map([...draining].filter(([name]) => !decided.has(name)))
    held = await evictAll(needs, stillDraining, held, signal)
    if (map !== undefined && found !== undefined) await announce(map, state, plan)
    const dueMs = (plan.dueMs ?? Number.POSITIVE_INFINITY) - clock.wallMs()
    return Math.min(draining.size > 0 || plan.steps.length > 0 ? drainMs : idleMs, Math.max(collectMs, dueMs))
  }

  const work = async () => {
    await Promise.all([nodes.listed, pods.listed, maps.listed])
    while (!signal.aborted) {
      const waitMs = await pass().catch((error: unknown) => {
        log.warn('The maintenance of machines could not be continued', { error })
        return drainMs
      })
      await bell.sleep(waitMs, signal)
      await clock.sleep(collectMs, signal)
    }
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'pods', run: pods.run },
    { name: 'configmaps', run: maps.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log).finally(() => metrics.show(undefined))
}

const component = 'maintenance-controller'
const notStarted = 'no maintenance is started'

/** Asks for each pod of a node that drains. What budgets hold is asked for last: it would hinder all others for ever. */
async function evictAll(
  { evict, log }: Pick<MaintenanceNeeds, 'evict' | 'log'>,
  draining: DrainPods,
  held: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const still = new Set<string>()
  await inParallel(draining.values(), writesAtOnce, async (leaving) => {
    for (const { metadata } of nextEvictions(leaving, held)) {
      const { namespace = '', name, uid } = metadata
      if (signal.aborted) return
      const pod = `${namespace}/${name}`
      const { outcome, code } = await evict({ namespace, name, uid }, signal)
      if (outcome === 'evicted') {
        log.info('A pod is evicted for the maintenance of its machine', { pod })
        continue
      }
      if (outcome === 'refused' && !held.has(uid))
        log.warn('A pod cannot be evicted for the maintenance of its machine, trying again', { pod, code })
      still.add(uid)
    }
  })
  return still
}

function nameOf({ metadata }: StoredPod): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

type Writing = Pick<MaintenanceNeeds, 'store' | 'events' | 'clock' | 'log'>

/** What the loop writes. The informers have it afterwards: the next decision counts with it. */
function maintenanceWrites(
  { store, events, clock, log }: Writing,
  nodes: Informer<'nodes'>,
  maps: Informer<'configmaps'>,
) {
  const record = async (step: NodeStep) => {
    const { node, record: after, message } = step
    if (message === undefined) return
    log.info('The maintenance of a machine goes on', { node, phase: after.phase, id: after.id, what: message })
    const type = after.phase === 'Failed' ? 'Warning' : 'Normal'
    const event = { type, reason: `Maintenance${after.phase}`, message, component } as const
    await events
      .record({ object: nodeReference(node), ...event })
      .catch((error: unknown) => log.warn('Event not recorded', { reason: event.reason, object: node, error }))
  }

  const carryOut = async (steps: readonly NodeStep[]) => {
    await inParallel(steps, writesAtOnce, async (step) => {
      const key = { namespace: '', name: step.node }
      const written = await rewrite({ store, clock }, 'nodes', { key, change: (node) => withStep(node, step) })
      if (written !== undefined) await record(step)
    })
    nodes.catchUp()
  }

  const save = async (map: StoredObject<'configmaps'>, { state, status }: MaintenancePlan) => {
    const written = await rewrite({ store, clock }, 'configmaps', {
      key: maintenanceKey,
      uid: map.metadata.uid,
      change(object) {
        // An operator has paused or resumed it, or changed its rules, meanwhile: it is decided again.
        if (operatorsPart(object) !== operatorsPart(map)) return undefined
        const data = { ...object.data, ...maintenanceData(object, state, status) }
        return JSON.stringify(data) === JSON.stringify(object.data) ? undefined : { ...object, data }
      },
    })
    maps.catchUp()
    return written !== undefined
  }

  return { carryOut, save }
}

function operatorsPart({ data = {} }: StoredObject<'configmaps'>): string {
  const { rules, pause, resumedAt } = data
  return JSON.stringify([rules, pause, resumedAt])
}
