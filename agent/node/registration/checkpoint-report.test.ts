import { type Test, test } from 'tap'
import type { NodeCheckpoint } from '../../../api/node/node-checkpoint.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { DesiredMessage } from '../../../api/topics.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { failureStatus } from '../../testing/fake-api.ts'
import { checkpointReporter } from './checkpoint-report.ts'

const awaiting: DesiredMessage = { epoch: 'two', version: 1, pods: [], store: 'store-2', awaitsCheckpoint: true }
const saved: DesiredMessage = {
  epoch: 'one',
  version: 7,
  pods: [aPod({ name: 'web' }), aPod({ name: 'db' })],
  secrets: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hidden', namespace: 'default' } }],
}

test('desired pods are ignored until the controller has the checkpoint', async (t) => {
  const { reporter, received, sent, clock, world } = node(t, saved)
  reporter.desired(awaiting)
  await clock.settle()
  t.same(received, [])
  t.same(
    sent.map(({ store, pods = [], secrets = [], complete = false }) => [store, pods.length, secrets.length, complete]),
    [
      ['store-2', 2, 0, false],
      ['store-2', 0, 1, false],
      ['store-2', 0, 0, true],
    ],
  )
  t.equal(sent.at(-1)?.hasAllPods, true, 'it has no others')
  t.equal(world.accepted, 1)
  const wanted = { ...saved, epoch: 'two', store: 'store-2' }
  reporter.desired(wanted)
  t.same(received, [wanted])
})

test('the records of claims are returned as they were received, after the pods', async (t) => {
  const record = { text: '{"claim":{},"volume":{}}', proof: 'proof' }
  const claims = [
    { namespace: 'default', name: 'db', uid: 'one', record },
    { namespace: 'default', name: 'old', uid: 'of a controller that sends no records' },
  ]
  const { reporter, sent, clock } = node(t, { ...saved, claims })
  reporter.desired(awaiting)
  await clock.settle()
  t.same(
    sent.map((part) => part.claims ?? Object.keys(part).at(-1)),
    ['pods', [record], 'secrets', 'hasAllPods'],
  )
})

test('a node without a checkpoint reports an empty one', async (t) => {
  const { reporter, sent, clock } = node(t, undefined)
  reporter.desired(awaiting)
  await clock.settle()
  t.match(sent, [{ complete: true, store: 'store-2', hasAllPods: undefined }])
})

test('a checkpoint of the same store is not reported: the node was deleted there', async (t) => {
  const { reporter, sent, clock } = node(t, { ...saved, store: 'store-2' })
  reporter.desired(awaiting)
  await clock.settle()
  t.same(
    sent.map(({ pods, secrets, complete, hasAllPods }) => [pods, secrets, complete, hasAllPods]),
    [[undefined, undefined, true, undefined]],
    'this checkpoint does not depend on the pods in the store',
  )
})

test('a node that may have further pods does not report that it has sent all', async (t) => {
  const { reporter, sent, clock } = node(t, saved, false)
  reporter.desired(awaiting)
  await clock.settle()
  t.match(sent.at(-1), { complete: true, hasAllPods: undefined })
})

test('pods that the controller does not restore are logged', async (t) => {
  const because = 'Pod default/web of node pi-1 was not restored'
  const { reporter, sent, clock, answers, log } = node(t, saved)
  answers.push({ status: 201, body: { kind: 'Status', message: because }, dateHeader: undefined })
  reporter.desired(awaiting)
  await clock.settle()
  t.equal(sent.at(-1)?.complete, true)
  t.same(log.messages('warn'), ['Pods of this node stop: the controller did not restore them'])
})

test('a failed report is repeated, and desired pods are ignored meanwhile', async (t) => {
  const { reporter, received, sent, clock, answers, log } = node(t, saved)
  answers.push(failureStatus(500, 'no'), new Error('no answer'))
  reporter.desired(awaiting)
  await clock.advance(5 * 60_000)
  t.same(received, [])
  t.equal(sent.at(-1)?.complete, true)
  t.equal(log.messages('warn').length, 1)
})

test('a large checkpoint is reported in parts', async (t) => {
  const big = (name: string) => aPod({ name, metadata: { annotations: { big: 'x'.repeat(75_000) } } })
  const { reporter, sent, clock } = node(t, { ...saved, pods: [big('a'), big('b'), aPod({ name: 'c' })], secrets: [] })
  reporter.desired(awaiting)
  await clock.settle()
  t.same(
    sent.map(({ pods = [] }) => pods.map(({ metadata }) => metadata.name)),
    [['a'], ['b', 'c'], []],
  )
})

function node(t: Test, remembered: DesiredMessage | undefined, hasAllPods = true) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const sent: NodeCheckpoint[] = []
  const received: DesiredMessage[] = []
  const answers: (ApiAnswer | Error)[] = []
  const world = { accepted: 0 }
  const reporter = checkpointReporter({
    api: {
      post: async (_path, body) => {
        const answer = answers.shift() ?? { status: 201, body: {}, dateHeader: undefined }
        if (answer instanceof Error) throw answer
        if (answer.status === 201) sent.push(body as NodeCheckpoint)
        return answer
      },
    },
    nodeName: 'pi-1',
    remembered: async () => remembered && { desired: remembered, hasAllPods },
    desired: (message) => void received.push(message),
    accepted: () => world.accepted++,
    clock,
    random: () => 0.5,
    log,
  })
  const stop = new AbortController()
  const running = reporter.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return { reporter, received, sent, clock, answers, log, world }
}
