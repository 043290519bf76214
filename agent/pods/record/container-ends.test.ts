import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { type ContainerEnds, endMessages, endsAfter, withEnds } from './container-ends.ts'
import { newRecord } from './pod-record.ts'

const image = 'app:1'
type Policy = 'Always' | 'OnFailure' | 'Never'

function podOf(restartPolicy: Policy) {
  const sidecar = { name: 'sidecar', image, restartPolicy: 'Always' }
  const pod = aPod({ name: 'web', restartPolicy, containers: [{ name: 'main', image }] })
  const initContainers = [{ name: 'init', image }, sidecar]
  return { ...pod, spec: { ...pod.spec, initContainers, ephemeralContainers: [{ name: 'look', image }] } }
}

function ended(containerName: string, exitCode: number, over: Partial<RuntimeContainer> & { attempt?: number } = {}) {
  const { attempt = 0, ...rest } = over
  const finishedAt = '2026-01-01T00:00:09Z'
  const identity = { containerName, attempt, specHash: 'hash' }
  return aContainer({ id: `${containerName}-${attempt}`, identity, state: 'exited', exitCode, finishedAt, ...rest })
}

function after(policy: Policy, listed: readonly RuntimeContainer[], ends: ContainerEnds = new Map(), more = {}) {
  return endsAfter(podOf(policy), { ...newRecord, ends, ...more }, listed)
}

test('the end of a container is remembered if its restart policy does not start it again', async (t) => {
  const remembered: readonly (readonly [Policy, string, number, boolean])[] = [
    ['Never', 'main', 4, true],
    ['Never', 'main', 0, true],
    ['OnFailure', 'main', 0, true],
    ['OnFailure', 'main', 4, false],
    ['Always', 'main', 0, false],
    ['Always', 'init', 0, true],
    ['Always', 'init', 1, false],
    ['Never', 'init', 1, true],
    ['Never', 'sidecar', 0, false],
    ['Always', 'look', 7, true],
    ['Never', 'stranger', 0, false],
  ]
  for (const [policy, name, exitCode, expected] of remembered) {
    t.equal(after(policy, [ended(name, exitCode)]).has(name), expected, `${policy} ${name} ${exitCode}`)
  }
  t.equal(after('Never', [aContainer()]).size, 0, 'it runs')
  const replacing = new Set(['main-0'])
  t.equal(after('OnFailure', [ended('main', 0)], new Map(), { replacing }).size, 0, 'another one takes its place')
  const refused = aContainer({ state: 'created', error: 'no such file', startedAt: undefined })
  t.match(after('Never', [refused]).get('main'), { state: 'created', error: 'no such file' }, 'it could not be started')
})

test('the end of a newer instance replaces the one before, and the same list changes nothing', async (t) => {
  const first = after('Never', [ended('main', 4)])
  t.equal(after('Never', [ended('main', 4)], first), first)
  t.equal(after('Never', [], first), first, 'somebody removed it')
  const second = after('Never', [ended('main', 5, { attempt: 1 }), ended('main', 4)], first)
  t.match(second.get('main'), { attempt: 1, exitCode: 5 })
  t.equal(after('Never', [aContainer({ id: 'new', identity: { attempt: 2 } })], second).size, 0, 'it runs again')
})

test('a removed container is listed as it ended, one that is listed or not specified is not added', async (t) => {
  const over = { oomKilled: true, imageID: 'docker://sha256:1', sandboxID: 'box' }
  const container = ended('main', 137, { ...over, attempt: 3 })
  const terminationMessages = new Map([['main-3', 'no memory']])
  const ends = after('Never', [container], new Map(), { terminationMessages })
  const pod = podOf('Never')
  const { gracePeriodSeconds: _, ...identity } = container.identity
  t.match(withEnds(pod, ends, []), [{ ...container, identity }])
  t.same(withEnds(pod, ends, [container]), [container])
  t.same(withEnds(pod, ends, [ended('main', 1)]).length, 1, 'another instance')
  t.same(withEnds(aPod({ name: 'web', containers: [{ name: 'other', image }] }), ends, []), [])
  t.same(endMessages(ends), [['main-3', 'no memory']])
})
