/** Loop: takes the release of the fleet's rollout through its nodes. It writes which node may take it; the node outbox publishes that. */
import { isDeepStrictEqual } from 'node:util'
import { isPausedByOperator, isRolloutMap, rolloutKey } from '../../../api/node/agent-rollout.ts'
import { goodbyeReasonAnnotation } from '../../../api/node/lifecycle-annotations.ts'
import type { Node } from '../../../api/node.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { version } from '../../../daemon/process/version.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type Informer, informer } from '../../store/informer.ts'
import { objectReference } from '../../store/references.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import { addressesOfControllers } from './controller-addresses.ts'
import { type RunningController, waitForController } from './controller-first.ts'
import { type Admission, nextRollout, type RolloutPlan } from './next-rollout.ts'
import { rolloutNode, withoutRelease, withRelease, withReport, writtenOn } from './node-facts.ts'
import type { RolloutNode } from './rollout-facts.ts'
import type { RolloutMetrics } from './rollout-metrics.ts'
import { type RolloutWish, readRollout, rolloutData } from './rollout-object.ts'

export type RolloutNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly metrics: RolloutMetrics
  readonly clock: Clock
  readonly log: Log
  /** Default: this version, which is not on trial. */
  readonly runningController?: () => Promise<RunningController>
}

const thisVersion = async (): Promise<RunningController> => ({ version, isOnTrial: false })

/** Changes of the fleet are collected: a decision is about all of its nodes. */
const collectMs = 1_000
const idleMs = 300_000
const writesAtOnce = 16

export function rolloutController(needs: RolloutNeeds): Loop {
  return { name: 'agent-rollout', run: (signal) => runRollout(needs, signal) }
}

async function runRollout(needs: RolloutNeeds, signal: AbortSignal): Promise<void> {
  const { store, events, metrics, clock, log, runningController = thisVersion } = needs
  const bell = alarm(clock)
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined || previous === undefined || factsOf(present) !== factsOf(previous)) bell.ring()
  })
  const maps = informer({ store, clock, log }, 'configmaps', (present, previous) => {
    const map = present ?? previous
    if (map !== undefined && isRolloutMap(map)) bell.ring()
  })
  let refused: string | undefined
  const { keepReports, carryOut, save } = rolloutWrites({ store, clock, log }, nodes, maps)

  /** When to decide again at the latest. */
  const pass = async (): Promise<number> => {
    await keepReports()
    const map = maps.get(rolloutKey)
    const nowMs = clock.wallMs()
    const found = map && readRollout(map, nowMs)
    if (typeof found !== 'object') metrics.show(undefined)
    if (map === undefined || found === undefined) return idleMs
    if (typeof found === 'string') {
      if (found !== refused) log.error('The rollout of the agent cannot be used', { because: found })
      refused = found
      return idleMs
    }
    const { wish, state } = found
    const controllers = await addressesOfControllers(store)
    const members: RolloutNode[] = []
    await eachInTurns([...nodes.all()], (node) => void members.push(rolloutNode(node, wish.rules, controllers)))
    const wait = waitForController(wish.controller, await runningController())
    const plan = nextRollout(state, { ...wish, nodes: members, wait, nowMs })
    metrics.show({ version: wish.target.version, status: plan.status, isPausedByOperator: isPausedByOperator(map) })
    await carryOut(plan.admit, plan.withdraw)
    const isSaved = await save(map, wish, plan)
    if (isSaved && state.paused === undefined && plan.state.paused !== undefined) {
      log.warn('The rollout of the agent pauses', { because: plan.state.paused })
      const message = `${plan.state.paused}. Resume with bramble-controller updates resume`
      const event = { type: 'Warning', reason: 'AgentRolloutPaused', message, component: 'rollout-controller' } as const
      await events.record({ object: objectReference(map), ...event })
    }
    return Math.min(idleMs, Math.max(collectMs, (plan.dueMs ?? Number.POSITIVE_INFINITY) - clock.wallMs()))
  }

  const work = async () => {
    await Promise.all([nodes.listed, maps.listed])
    while (!signal.aborted) {
      const waitMs = await pass().catch((error: unknown) => {
        log.warn('The rollout of the agent could not be continued', { error })
        return collectMs
      })
      await bell.sleep(waitMs, signal)
      await clock.sleep(collectMs, signal)
    }
  }

  const loops = [
    { name: 'nodes', run: nodes.run },
    { name: 'configmaps', run: maps.run },
    { name: 'work', run: work },
  ]
  await runLoops(loops, signal, log).finally(() => metrics.show(undefined))
}

type Writing = Pick<RolloutNeeds, 'store' | 'clock' | 'log'>

/** What the loop writes. The informers have it afterwards: the next decision counts with it. */
function rolloutWrites({ store, clock, log }: Writing, nodes: Informer<'nodes'>, maps: Informer<'configmaps'>) {
  const change = (name: string, changed: (node: StoredObject<'nodes'>) => StoredObject<'nodes'> | undefined) =>
    rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, change: changed })

  const keepReports = async () => {
    const nowMs = clock.wallMs()
    const reporting: StoredObject<'nodes'>[] = []
    await eachInTurns([...nodes.all()], (node) => {
      if (withReport(node, nowMs) !== undefined) reporting.push(node)
    })
    await inParallel(reporting, writesAtOnce, async ({ metadata }) => {
      await change(metadata.name, (node) => withReport(node, nowMs))
    })
    nodes.catchUp()
  }

  const carryOut = async (admit: readonly Admission[], withdraw: readonly string[]) => {
    const nowMs = clock.wallMs()
    await inParallel(withdraw, writesAtOnce, async (name) => {
      await change(name, withoutRelease)
    })
    await inParallel(admit, writesAtOnce, async ({ node: name, release }) => {
      log.info('A node may take a release of the agent', { node: name, version: release.version })
      await change(name, (node) => withRelease(node, release, nowMs))
    })
    nodes.catchUp()
  }

  const save = async (map: StoredObject<'configmaps'>, wish: RolloutWish, { state, status }: RolloutPlan) => {
    const written = await rewrite({ store, clock }, 'configmaps', {
      key: rolloutKey,
      uid: map.metadata.uid,
      change(object) {
        // Another rollout was started meanwhile: this state is not its own.
        const found = readRollout(object)
        if (typeof found !== 'object' || !isDeepStrictEqual(found.wish, wish)) return undefined
        const data = { ...object.data, ...rolloutData(object, wish, state, status) }
        return isDeepStrictEqual(data, object.data) ? undefined : { ...object, data }
      },
    })
    maps.catchUp()
    return written !== undefined
  }

  return { keepReports, carryOut, save }
}

/** All that a decision depends on. Most changes of a Node are heartbeats. */
function factsOf(node: Node): string {
  const { labels, annotations } = node.metadata
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  const { admission, report } = writtenOn(node)
  return JSON.stringify([labels, admission, report, ready?.status, annotations?.[goodbyeReasonAnnotation]])
}
