import { test } from 'tap'
import type { PodCondition, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fleet } from '../../testing/fleet.ts'
import { disruptionController } from './disruption-controller.ts'
import { staleDisruptionLeftMs } from './stale-disruption.ts'

const since = '2026-01-01T00:00:00Z'
const sinceMs = Date.parse(since)
const target = (over: Partial<PodCondition> = {}): PodCondition => ({
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'EvictionByEvictionAPI',
  message: 'Eviction API: evicting',
  lastTransitionTime: since,
  ...over,
})
const disrupted = (over: Partial<PodCondition> = {}, status: Partial<PodStatus> = {}) =>
  aPod({ name: 'web', phase: 'Running', status: { conditions: [target(over)], ...status } })

test('a disruption that did not come is withdrawn after two minutes', async (t) => {
  t.equal(staleDisruptionLeftMs(disrupted(), sinceMs + 30_000), 90_000)
  t.equal(staleDisruptionLeftMs(disrupted(), sinceMs + 120_000), 0)
  t.equal(staleDisruptionLeftMs(disrupted(), sinceMs + 999_000), 0)
  t.equal(staleDisruptionLeftMs(disrupted({ lastTransitionTime: '' }), sinceMs), 0, 'since when is not known')
})

test('the condition of a pod that goes, has ended, or is ended by its node stays', async (t) => {
  const leaving = disrupted()
  const kept = [
    { ...leaving, metadata: { ...leaving.metadata, deletionTimestamp: since } },
    disrupted({}, { phase: 'Failed' }),
    disrupted({}, { phase: 'Succeeded' }),
    disrupted({ reason: 'TerminationByKubelet' }),
    disrupted({ status: 'False' }),
    aPod({ name: 'calm', phase: 'Running' }),
  ]
  for (const pod of kept) t.equal(staleDisruptionLeftMs(pod, sinceMs + 999_000), undefined)
})

test('a pod whose announced disruption did not come has the condition as False later', async (t) => {
  const world = fleet(t)
  t.teardown(world.start(disruptionController(world)))
  const lastTransitionTime = new Date(world.clock.wallMs()).toISOString()
  await world.run({ name: 'web', nodeName: 'pi-1', status: { conditions: [target({ lastTransitionTime })] } })
  await world.pass(100)
  const conditions = async () => (await world.pod('web'))?.status?.conditions
  t.match(await conditions(), [{ type: 'DisruptionTarget', status: 'True' }])
  await world.pass(30)
  const [condition] = (await conditions()) ?? []
  t.match(condition, { type: 'DisruptionTarget', status: 'False' })
  t.same([condition?.reason, condition?.message], [undefined, undefined], 'as UpdatePodCondition leaves it')
})
