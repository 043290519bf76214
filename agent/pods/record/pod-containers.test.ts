import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import {
  containersOf,
  exitCodeOf,
  hasEnded,
  isHalfMade,
  isRunning,
  isSidecar,
  restartPolicyFor,
  sortContainers,
  stopGraceSeconds,
} from './pod-containers.ts'

const [main, first, look] = [{ name: 'main' }, { name: 'first' }, { name: 'look' }]
const side = { name: 'side', restartPolicy: 'Always' }
const spec = { initContainers: [first, side], ephemeralContainers: [look] }

test('init containers come first, ephemeral ones last', async (t) => {
  const names = (pod: ReturnType<typeof aPod>) => containersOf(pod).map(({ name }) => name)
  t.same(names(aPod({ containers: [main], spec })), ['first', 'side', 'main', 'look'])
  t.same(names(aPod({ containers: [main] })), ['main'])
  t.same([main, first, side].map(isSidecar), [false, false, true])
})

test('each kind of container has its restart policy', async (t) => {
  const policies = (restartPolicy: 'Always' | 'OnFailure' | 'Never') =>
    [main, first, side, look].map((one) => restartPolicyFor(aPod({ restartPolicy, containers: [main], spec }), one))
  t.same(policies('Always'), ['Always', 'OnFailure', 'Always', 'Never'])
  t.same(policies('OnFailure'), ['OnFailure', 'OnFailure', 'Always', 'Never'])
  t.same(policies('Never'), ['Never', 'Never', 'Always', 'Never'])
  t.equal(restartPolicyFor(aPod({ containers: [main] }), main), 'Always')
})

test('containers are sorted by attempt, then by time, and sandboxes apart', async (t) => {
  const one = (containerName: string, attempt: number, second = 0): RuntimeContainer =>
    aContainer({
      id: `${containerName}${attempt}.${second}`,
      identity: { containerName, attempt },
      createdAt: `2026-01-01T00:00:0${second}Z`,
    })
  const { sandbox, olderSandboxes, histories } = sortContainers([
    ...[one('', 0), one('a', 0, 5), one('a', 2, 1), one('', 1), one('b', 1, 3), one('b', 1, 4), one('a', 1, 9)],
  ])
  t.equal(sandbox?.id, '1.0')
  t.same(
    olderSandboxes.map(({ id }) => id),
    ['0.0'],
  )
  t.same([...histories].map(([name, all]) => [name, ...all.map(({ id }) => id)]).sort(), [
    ['a', 'a2.1', 'a1.9', 'a0.5'],
    ['b', 'b1.4', 'b1.3'],
  ])
  t.same(sortContainers([]), { sandbox: undefined, olderSandboxes: [], histories: new Map() })
})

test('a container holds processes, has ended, or was never started', async (t) => {
  const cases: readonly (readonly [RuntimeContainer['state'], string, string])[] = [
    ['running', '', 'runs'],
    ['paused', '', 'runs'],
    ['restarting', '', 'runs'],
    ['exited', '', 'ended'],
    ['dead', '', 'ended'],
    ['created', 'no such file', 'ended'],
    ['created', '', 'half made'],
  ]
  for (const [state, error, wanted] of cases) {
    const one = aContainer({ state, error })
    const found = [isRunning(one) && 'runs', hasEnded(one) && 'ended', isHalfMade(one) && 'half made']
    t.same(found.filter(Boolean), [wanted], `${state} ${error}`)
  }
  t.equal(exitCodeOf(aContainer({ state: 'exited', exitCode: 3 })), 3)
  t.equal(exitCodeOf(aContainer({ state: 'created', exitCode: 127 })), 128)
})

test('a pod has the grace period of its deletion, or of its specification, and at least two seconds', async (t) => {
  const grace = (terminationGracePeriodSeconds?: number, deletionGracePeriodSeconds?: number) => {
    const metadata = deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }
    const own = terminationGracePeriodSeconds === undefined ? {} : { terminationGracePeriodSeconds }
    return stopGraceSeconds(aPod({ metadata, spec: own }))
  }
  t.same([grace(), grace(60), grace(1), grace(0)], [30, 60, 2, 2])
  t.same([grace(60, 5), grace(60, 0), grace(5, 60)], [5, 2, 60])
})
