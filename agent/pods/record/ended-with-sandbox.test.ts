import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { endsAfter } from './container-ends.ts'
import { endedWithSandbox, withFailed } from './ended-with-sandbox.ts'
import { newRecord } from './pod-record.ts'

const image = 'app:1'
const at = (seconds: number) => new Date(Date.parse('2026-01-01T00:01:00Z') + seconds * 1000).toISOString()
type Policy = 'Always' | 'OnFailure' | 'Never'
const pod = (restartPolicy: Policy) => {
  const one = aPod({ name: 'web', restartPolicy, containers: [{ name: 'main', image }] })
  return { ...one, spec: { ...one.spec, initContainers: [{ name: 'init', image }] } }
}
const sandbox = (seconds?: number) =>
  aContainer({
    identity: { containerName: '' },
    ...(seconds === undefined ? {} : { state: 'exited', exitCode: 137, finishedAt: at(seconds) }),
  })
const ended = (name: string, seconds: number, over: Partial<RuntimeContainer> = {}) =>
  aContainer({ identity: { containerName: name }, state: 'exited', finishedAt: at(seconds), ...over })
const found = (policy: Policy, ...listed: readonly RuntimeContainer[]) =>
  endedWithSandbox(pod(policy), new Map(), listed)

test('a container that exits with 0 when its sandbox ends has not completed', async (t) => {
  for (const policy of ['Never', 'OnFailure'] as const) {
    t.same(found(policy, sandbox(0), ended('main', 0.01)), ['main'], policy)
    t.same(found(policy, sandbox(0), ended('main', 9)), ['main'], 'it took its time')
    t.same(found(policy, sandbox(2), ended('main', 0)), ['main'], 'the signals were sent one after the other')
  }
  t.same(
    found('Always', sandbox(0), ended('init', 1), ended('main', 1)),
    ['init'],
    'the other one starts again in any case',
  )
})

test('a container completes while its sandbox runs, or where the engine has no sandbox of it', async (t) => {
  t.same(found('Never', sandbox(), ended('main', 0)), [])
  t.same(found('Never', ended('main', 0)), [], 'a user removed the sandbox')
  t.same(found('Never', sandbox(60), ended('main', 0)), [], 'the sandbox ended later')
  t.same(found('Never', sandbox(0), ended('main', 0, { sandboxID: 'earlier' })), [], 'it had another one')
  t.same(found('Never', sandbox(0), aContainer()), [], 'it runs')
})

test('a container with another exit code has failed, and one that is not in the specification does not matter', async (t) => {
  t.same(found('Never', sandbox(0), ended('main', 0, { exitCode: 4 }), ended('stranger', 0)), [])
})

test('an end that was observed while the sandbox ran stays what it was', async (t) => {
  const main = ended('main', 0)
  const ends = endsAfter(pod('Never'), newRecord, [sandbox(), main])
  t.same(endedWithSandbox(pod('Never'), ends, [sandbox(1), main]), [])
  t.same(endedWithSandbox(pod('Never'), ends, [sandbox(1), { ...main, id: 'next' }]), ['next'])
})

test('it has failed as with SIGTERM, and its status has the reason', async (t) => {
  const main = ended('main', 0)
  const listed = [sandbox(0), main]
  t.equal(withFailed(listed, new Set()), listed)
  t.match(withFailed(listed, new Set(['main']))[1], {
    id: 'main',
    exitCode: 143,
    error: /the container engine is stopped/,
  })
  t.equal(withFailed(listed, new Set(['main']))[0], listed[0])
})
