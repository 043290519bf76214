import { test } from 'tap'
import { type LevelVersion, latestVersion } from '../../../api/pod-security/levels.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { existingPodWarnings, oneOfEachFirst, violationWarnings } from './existing-pods.ts'

const baseline: LevelVersion = { level: 'baseline', version: latestVersion }
const going = new AbortController().signal
const atOnce = { monotonicMs: () => 0 }
const heading = 'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"'
const bad = (name: string, owner?: string) =>
  aPod({
    name,
    spec: { hostPID: true },
    metadata: {
      name,
      ...(owner && {
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true }],
      }),
    },
  })

test('pods are grouped by what they violate, each group with its first pod by name', async (t) => {
  const found = new Map([
    ['hostPort', { first: 'b', count: 1 }],
    ['privileged', { first: 'a', count: 2 }],
    ['host namespaces', { first: 'a', count: 12 }],
  ])
  t.same(violationWarnings('shop', baseline, found, { checked: 15, all: 15 }), [
    heading,
    'a (and 1 other pod): privileged',
    'a (and 11 other pods): host namespaces',
    'b: hostPort',
  ])
  t.same(await existingPodWarnings('shop', baseline, [aPod()], atOnce, going), [])
  t.same(await existingPodWarnings('shop', baseline, [bad('b'), aPod(), bad('a')], atOnce, going), [
    heading,
    'a (and 1 other pod): host namespaces',
  ])
})

test('one pod of each controller comes before the others of it', async (t) => {
  const pods = [bad('a1', 'a'), bad('a2', 'a'), bad('alone'), bad('b1', 'b'), bad('a3', 'a')]
  t.same(
    oneOfEachFirst(pods).map(({ metadata }) => metadata.name),
    ['a1', 'alone', 'b1', 'a2', 'a3'],
  )
})

test('no more than 3000 pods are looked at, for no longer than a second, and not for a client that is gone', async (t) => {
  const many = Array.from({ length: 3001 }, (_, number) => bad(`pod-${number}`))
  const [limit] = await existingPodWarnings('shop', baseline, many, atOnce, going)
  t.equal(limit, 'new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods')

  let nowMs = 0
  const slow = { monotonicMs: () => (nowMs += 100) }
  const [late = ''] = await existingPodWarnings('shop', baseline, many, slow, going)
  const checked = Number(/first (\d+) of 3001/.exec(late)?.[1])
  t.ok(checked > 0 && checked < 10, late)

  const gone = await existingPodWarnings('shop', baseline, many, atOnce, AbortSignal.abort())
  t.match(gone[0], 'checked against the first 1 of 3001 existing pods')
})

test('other work is done while many pods are looked at', async (t) => {
  const many = Array.from({ length: 20 }, (_, number) => bad(`pod-${number}`))
  let nowMs = 0
  let turns = 0
  let isDone = false
  const turn = () => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  await existingPodWarnings('shop', baseline, many, { monotonicMs: () => (nowMs += 11) }, going)
  isDone = true
  t.ok(turns >= 19, `${turns} turns of the event loop for 20 pods that took 11 ms each`)
})
