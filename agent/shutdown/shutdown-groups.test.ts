import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { isShutdownOff, type ShutdownSettings, sharesOf, stopGroups, usableMs, wantedMs } from './shutdown-groups.ts'

const asGranted: ShutdownSettings = { graceMs: undefined, criticalMs: undefined, byPriority: [] }
const critical = 2_000_000_000

test('with nothing configured critical pods have a third of what is granted', async (t) => {
  t.same(sharesOf(asGranted, 29_000), [
    { priority: 0, graceMs: 20_000 },
    { priority: critical, graceMs: 9_000 },
  ])
  t.same(
    sharesOf(asGranted, 4_000).map(({ graceMs }) => graceMs),
    [3_000, 1_000],
    'of the 5 s a Debian grants by itself',
  )
})

test('what is configured is kept where it is granted, and shortened alike where it is not', async (t) => {
  const settings = { graceMs: 30_000, criticalMs: 10_000, byPriority: [] }
  const given = (usableMs: number) => sharesOf(settings, usableMs).map(({ graceMs }) => graceMs)
  t.same(given(60_000), [20_000, 10_000])
  t.same(given(30_000), [20_000, 10_000])
  t.same(given(15_000), [10_000, 5_000])
  t.same(given(4_000), [2_000, 1_000])
})

test('a table of priorities takes the place of both, in whatever order it is written', async (t) => {
  const byPriority = [
    { priority: 1000, graceMs: 5_000 },
    { priority: -10, graceMs: 2_000 },
    { priority: 100, graceMs: 0 },
  ]
  const shares = sharesOf({ ...asGranted, byPriority }, 60_000)
  t.same(
    shares.map(({ priority }) => priority),
    [-10, 100, 1000],
  )
  const pod = (name: string, priority: number) => aPod({ name, priority })
  const groups = stopGroups(shares, [pod('top', 5000), pod('low', -50), pod('plain', 0), pod('mid', 999)])
  t.same(groups, [
    {
      graceMs: 2_000,
      pods: [
        { uid: 'uid-of-low', gracePeriodSeconds: 2 },
        { uid: 'uid-of-plain', gracePeriodSeconds: 2 },
      ],
    },
    { graceMs: 0, pods: [{ uid: 'uid-of-mid', gracePeriodSeconds: 0 }] },
    { graceMs: 5_000, pods: [{ uid: 'uid-of-top', gracePeriodSeconds: 5 }] },
  ])
})

test('a pod that wants less time than its share gets only that, and a group without pods is not waited for', async (t) => {
  const quick = aPod({ name: 'quick', spec: { terminationGracePeriodSeconds: 3 } })
  const shares = sharesOf({ graceMs: 30_000, criticalMs: 10_000, byPriority: [] }, 60_000)
  t.same(stopGroups(shares, [quick]), [{ graceMs: 20_000, pods: [{ uid: 'uid-of-quick', gracePeriodSeconds: 3 }] }])
})

test('it is off where no time is given', async (t) => {
  t.equal(isShutdownOff(asGranted), false)
  t.equal(isShutdownOff({ ...asGranted, graceMs: 0 }), true)
  t.equal(isShutdownOff({ ...asGranted, byPriority: [{ priority: 0, graceMs: 0 }] }), true)
})

test('a table of priorities decides alone how much time is wanted, and whether any is', async (t) => {
  const byPriority = [
    { priority: 0, graceMs: 5_000 },
    { priority: 100, graceMs: 7_000 },
  ]
  t.equal(wantedMs({ graceMs: 30_000, criticalMs: undefined, byPriority }), 12_000)
  t.equal(wantedMs({ graceMs: 30_000, criticalMs: undefined, byPriority: [] }), 30_000)
  t.equal(wantedMs(asGranted), undefined)
  t.equal(isShutdownOff({ graceMs: 0, criticalMs: undefined, byPriority }), false)
  t.equal(isShutdownOff({ graceMs: 30_000, criticalMs: undefined, byPriority: [{ priority: 0, graceMs: 0 }] }), true)
})

test('the agent keeps a second for itself, and no more than half of a short delay', async (t) => {
  t.same([30_000, 2_000, 1_500, 0].map(usableMs), [29_000, 1_000, 750, 0])
})

test('critical pods have no more than all of the time, and pods without a wish have their share', async (t) => {
  const shares = sharesOf({ graceMs: 10_000, criticalMs: 30_000, byPriority: [] }, 60_000)
  t.same(
    shares.map(({ graceMs }) => graceMs),
    [0, 10_000],
  )
  const { terminationGracePeriodSeconds: _, ...spec } = aPod({ priority: critical }).spec
  const patient = { ...aPod({ name: 'patient' }), spec }
  t.same(stopGroups(shares, [patient]), [
    { graceMs: 10_000, pods: [{ uid: 'uid-of-patient', gracePeriodSeconds: 10 }] },
  ])
  t.same(stopGroups([], [patient]), [], 'without shares no pod is stopped')
})

test('shares that are granted in full keep their parts of a second', async (t) => {
  const byPriority = [{ priority: 0, graceMs: 1_500 }]
  t.same(sharesOf({ ...asGranted, byPriority }, 1_500), byPriority)
})
