import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import {
  type CalculationInput,
  defaultCalculationSettings,
  type PodMetric,
  replicasByUtilization,
  replicasByValue,
} from './replica-calculation.ts'

const nowMs = Date.parse('2026-01-01T01:00:00Z')
const hourAgo = nowMs - 3600_000

type Given = {
  readonly name: string
  /** In thousandths; undefined: no metric. */
  readonly uses?: number
  readonly requests?: string
  readonly phase?: string
  readonly ready?: 'True' | 'False' | 'none'
  readonly startedMs?: number
  readonly readySinceMs?: number
  readonly leaving?: boolean
  readonly windowMs?: number
  readonly spec?: Pod['spec']
}

function aPod({ name, requests = '1', phase = 'Running', ready = 'True', ...more }: Given): Pod {
  const { startedMs = hourAgo, readySinceMs = hourAgo, leaving, spec } = more
  const condition = { type: 'Ready', lastTransitionTime: rfc3339(readySinceMs) }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(leaving && { deletionTimestamp: rfc3339(nowMs) }) },
    spec: spec ?? {
      containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: requests, memory: requests } } }],
    },
    status: {
      phase: phase as 'Running',
      startTime: rfc3339(startedMs),
      ...(ready !== 'none' && { conditions: [{ ...condition, status: ready }] }),
    },
  }
}

function input(pods: readonly Given[], more: Partial<CalculationInput> = {}): CalculationInput {
  const metrics = pods.flatMap(({ name, uses, windowMs = 10_000 }): [string, PodMetric][] =>
    uses === undefined ? [] : [[name, { value: uses, timestampMs: nowMs, windowMs }]],
  )
  return { current: pods.length, resource: 'cpu', pods: pods.map(aPod), metrics: new Map(metrics), nowMs, ...more }
}

const byShare = (pods: readonly Given[], target: number, more: Partial<CalculationInput> = {}) =>
  finished(replicasByUtilization(input(pods, more), target, defaultCalculationSettings))
const byValue = (pods: readonly Given[], target: number, more: Partial<CalculationInput> = {}) =>
  finished(replicasByValue(input(pods, more), target, defaultCalculationSettings))
const problemOf = (answer: ReturnType<typeof byShare>) => (answer.ok ? undefined : answer.problem)

test('replicas follow the ratio of usage to the target, rounded up', async (t) => {
  const pods = [
    { name: 'a', uses: 900 },
    { name: 'b', uses: 700 },
  ]
  t.same(byShare(pods, 50), { ok: true, replicas: 4, utilization: 80, average: 800 })
  t.same(byShare(pods, 80), { ok: true, replicas: 2, utilization: 80, average: 800 }, 'exactly the target')
  t.match(byShare(pods, 200), { replicas: 1 })
  t.same(byValue(pods, 300), { ok: true, replicas: 6, average: 800 })
  t.match(byValue([{ name: 'a', uses: 0 }], 300), { replicas: 0, average: 0 })
})

test('a ratio within the tolerance changes nothing', async (t) => {
  const uses = (value: number) =>
    byShare(
      [
        { name: 'a', uses: value },
        { name: 'b', uses: value },
      ],
      100,
    )
  t.match(uses(1090), { replicas: 2 })
  t.match(uses(1100), { replicas: 3, utilization: 110 }, '1.1 - 1 is more than 0.1 in binary, as in Go')
  t.match(uses(900), { replicas: 2 })
  t.match(
    byShare(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ name: `${n}`, uses: 880 })),
      100,
    ),
    { replicas: 8 },
  )
  t.match(byValue([{ name: 'a', uses: 1100 }], 1000), { replicas: 2 })
  t.match(byValue([{ name: 'a', uses: 1099 }], 1000), { replicas: 1 })
})

test('utilization is that of all pods together, in whole percent', async (t) => {
  const pods = [
    { name: 'a', uses: 1999, requests: '2' },
    { name: 'b', uses: 0, requests: '1' },
  ]
  t.match(byShare(pods, 1000), { utilization: 66, average: 999 })
  const large = Array.from({ length: 40 }, (_, index) => ({ name: `${index}`, uses: 8e12, requests: '8Gi' }))
  t.match(byShare(large, 93, { resource: 'memory' }), { utilization: 93, average: 8e12 }, 'beyond 2^53 in the sum')
})

test('pods that leave or failed do not count', async (t) => {
  const pods = [
    { name: 'a', uses: 1000 },
    { name: 'b', uses: 5000, leaving: true },
    { name: 'c', uses: 5000, phase: 'Failed' },
  ]
  t.match(byShare(pods, 50), { replicas: 2, utilization: 100 })
})

test('pods without metrics count as idle where replicas are added', async (t) => {
  t.match(byShare([{ name: 'a', uses: 1000 }, { name: 'b' }], 40), { replicas: 3, utilization: 100 })
  t.match(byShare([{ name: 'a', uses: 1000 }, { name: 'b' }], 60), { replicas: 2 }, 'idle, it would be less than now')
  t.match(byValue([{ name: 'a', uses: 1000 }, { name: 'b' }], 400), { replicas: 3, average: 1000 })
})

test('pods without metrics count as busy where replicas are removed', async (t) => {
  const three = [{ name: 'a', uses: 100 }, { name: 'b', uses: 100 }, { name: 'c' }]
  t.match(byShare(three, 80), { replicas: 2, utilization: 10 }, '120 % of three pods')
  t.match(byShare([{ name: 'a', uses: 700 }, { name: 'b' }], 80), { replicas: 2 }, 'busy, it would be more than now')
  t.match(
    byShare([{ name: 'a', uses: 900 }, { name: 'b' }], 120),
    { replicas: 2 },
    'at the target where that is above 100',
  )
  t.match(byValue(three, 1000), { replicas: 2, average: 100 })
})

test('pods that are not ready count as idle where replicas are added, and not where they are removed', async (t) => {
  const pending = { name: 'b', phase: 'Pending', ready: 'False' } as const
  t.match(byShare([{ name: 'a', uses: 1000 }, pending], 30), { replicas: 4, utilization: 100 })
  t.match(byShare([{ name: 'a', uses: 1000 }, pending], 60), { replicas: 2 })
  t.match(byShare([{ name: 'a', uses: 100 }, { name: 'c', uses: 100 }, pending], 40), { replicas: 1 })
})

const missing = (...names: readonly string[]) => names.map((name) => ({ name }))

test('pods without metrics do not turn the direction', async (t) => {
  const busy = [{ name: 'a', uses: 450 }, ...missing('b')]
  t.match(byShare(busy, 50), { replicas: 2 }, 'with b busy it would be 3')
  const idle = [{ name: 'a', uses: 700 }, ...missing('b', 'c')]
  t.match(byShare(idle, 50), { replicas: 3 }, 'with b and c idle it would be 2')
  t.match(byShare(idle, 50, { current: 1 }), { replicas: 1 })
  t.match(byShare([{ name: 'a', uses: 500 }, ...missing('b')], 50), { replicas: 2 }, 'at the target')
  t.match(byShare([{ name: 'a', uses: 100 }, ...missing('b')], 200), { replicas: 2 }, 'b uses the target of 200 %')
})

test('with pods without metrics, a ratio near the target changes nothing', async (t) => {
  const pods = [{ name: 'a', uses: 500 }, ...missing('b', 'c', 'd', 'e', 'f')]
  t.match(byShare(pods, 100, { current: 7 }), { replicas: 7 })
})

test('while the target has other replicas than pods, the direction holds, too', async (t) => {
  const few = [{ name: 'a', uses: 700 }, { name: 'b', uses: 700 }, ...missing('c', 'd')]
  t.match(byShare(few, 100, { current: 2 }), { replicas: 2 }, 'less is asked for: four would be more')
  t.match(byShare([{ name: 'a', uses: 2600 }, ...missing('b')], 100, { current: 5 }), { replicas: 5 })
})

test('pods that are not ready do not turn the direction', async (t) => {
  const pending = { name: 'c', phase: 'Pending' }
  const busy = ['a', 'b'].map((name) => ({ name, uses: 1300 }))
  t.match(byShare([...busy, pending], 100, { current: 2 }), { replicas: 2 }, 'with c idle it would be less than now')
  const idle = ['a', 'b', 'd'].map((name) => ({ name, uses: 800 }))
  t.match(byShare([...idle, pending], 100, { current: 1 }), { replicas: 3 }, 'c does not count')
})

test('a pod that its node has not reported yet is not ready', async (t) => {
  const { status: _, ...unseen } = aPod({ name: 'b' })
  const { metrics } = input([
    { name: 'a', uses: 1000 },
    { name: 'b', uses: 1000 },
  ])
  const answer = byShare([], 50, { current: 2, metrics, pods: [aPod({ name: 'a' }), unseen] })
  t.match(answer, { ok: true, utilization: 100, replicas: 2 })
})

test('the numbers of replicas and percents end with the largest of 32 bits', async (t) => {
  const most = 2 ** 31 - 1
  t.match(byShare([{ name: 'a', uses: 3e13 }], 1), { utilization: most, replicas: most })
  t.match(byValue([{ name: 'a', uses: 3e13 }], 1), { replicas: most })
})

test('the tolerance can be set; at its edge nothing changes', async (t) => {
  const settings = { ...defaultCalculationSettings, tolerance: 0.5 }
  const replicas = (uses: number) => finished(replicasByValue(input([{ name: 'a', uses }]), 1000, settings))
  t.match([replicas(1500), replicas(1501)], [{ replicas: 1 }, { replicas: 2 }])
})

test('the first minutes of a pod count only while it is ready, with a whole window since', async (t) => {
  const second = (given: Partial<Given>) =>
    byShare(
      [
        { name: 'a', uses: 100 },
        { name: 'b', uses: 9900, startedMs: nowMs - 60_000, ...given },
      ],
      50,
    )
  const utilization = (given: Partial<Given>) => {
    const answer = second(given)
    return answer.ok ? answer.utilization : answer.problem
  }
  t.equal(utilization({ ready: 'False' }), 10)
  t.equal(utilization({ readySinceMs: nowMs - 9_000 }), 10, 'the window began before')
  t.equal(utilization({ readySinceMs: nowMs - 10_000 }), 500)
  t.equal(utilization({ ready: 'none' }), 10)
  t.equal(
    utilization({ startedMs: nowMs - 300_000, ready: 'False', readySinceMs: nowMs - 200_000 }),
    500,
    'they are over',
  )
  t.equal(utilization({ startedMs: nowMs - 299_000, ready: 'False', readySinceMs: nowMs - 200_000 }), 10)
})

test('a pod that was never ready does not count later either; memory counts always', async (t) => {
  const utilization = (readySinceMs: number, resource = 'cpu') => {
    const late = { name: 'b', uses: 9900, startedMs: hourAgo, ready: 'False', readySinceMs } as const
    const answer = byShare([{ name: 'a', uses: 100 }, late], 50, { resource })
    return answer.ok ? answer.utilization : answer.problem
  }
  t.equal(utilization(hourAgo + 29_000), 10)
  t.equal(utilization(hourAgo + 30_000), 500)
  t.equal(utilization(hourAgo + 29_000, 'memory'), 500)
  const late = aPod({ name: 'b' })
  const conditions = [{ type: 'Ready', status: 'False' } as const]
  const { metrics } = input([
    { name: 'a', uses: 100 },
    { name: 'b', uses: 9900 },
  ])
  const pods = [aPod({ name: 'a' }), { ...late, status: { ...late.status, conditions } }]
  const answer = byShare([], 50, { metrics, pods })
  t.match(answer, { utilization: 10 }, 'when it changed is not known')
})

test('what is missing is named', async (t) => {
  t.equal(problemOf(byShare([], 50)), 'no pods returned by selector while calculating replica count')
  const none = 'did not receive metrics for targeted pods (pods might be unready)'
  t.equal(problemOf(byShare([{ name: 'a' }], 50)), none)
  t.equal(problemOf(byValue([{ name: 'a', uses: 1, ready: 'none' }], 50)), none)
  const spec = { containers: [{ name: 'main', image: 'i' }] }
  t.equal(problemOf(byShare([{ name: 'a', uses: 1, spec }], 50)), 'missing request for cpu in container main of Pod a')
  const limits = { containers: [{ name: 'main', image: 'i', resources: { limits: { cpu: '1' } } }] }
  t.match(problemOf(byShare([{ name: 'a', uses: 1, spec: limits }], 50)), /^missing request for cpu/)
  t.equal(problemOf(byShare([{ name: 'a', uses: 1, requests: '0' }], 50)), 'no metrics returned matched known pods')
})

test('containers that stay count, and of a named container only its own request', async (t) => {
  const resources = (cpu: string) => ({ requests: { cpu } })
  const spec: Pod['spec'] = {
    initContainers: [
      { name: 'once', image: 'i' },
      { name: 'proxy', image: 'i', restartPolicy: 'Always', resources: resources('500m') },
    ],
    containers: [
      { name: 'main', image: 'i', resources: resources('1') },
      { name: 'helper', image: 'i', resources: resources('500m') },
    ],
  }
  t.match(byShare([{ name: 'a', uses: 1000, spec }], 100), { utilization: 50 })
  t.match(byShare([{ name: 'a', uses: 1000, spec }], 100, { container: 'helper' }), { utilization: 200, replicas: 2 })
})
