import { type Test, test } from 'tap'
import type { NodeCheckpoint } from '../../../api/node/node-checkpoint.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { DesiredMessage } from '../../../api/topics.ts'
import type { ApiAnswer } from '../../../daemon/api-client.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { failureStatus } from '../../testing/fake-api.ts'
import { checkpointTeller } from './checkpoint-report.ts'

const asking: DesiredMessage = { epoch: 'two', version: 1, pods: [], store: 'store-2', awaitsCheckpoint: true }
const known: DesiredMessage = {
  epoch: 'one',
  version: 7,
  pods: [aPod({ name: 'web' }), aPod({ name: 'db' })],
  secrets: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hidden', namespace: 'default' } }],
}

test('what a controller wants counts as soon as it knows the node, and not before', async (t) => {
  const { teller, heard, sent, clock, world } = node(t, known)
  teller.desired(asking)
  await clock.settle()
  t.same(heard, [])
  t.same(
    sent.map(({ store, pods = [], secrets = [], complete = false }) => [store, pods.length, secrets.length, complete]),
    [
      ['store-2', 2, 0, false],
      ['store-2', 0, 1, false],
      ['store-2', 0, 0, true],
    ],
  )
  t.equal(world.accepted, 1)
  const wanted = { ...known, epoch: 'two', store: 'store-2' }
  teller.desired(wanted)
  t.same(heard, [wanted])
})

test('a node that remembers nothing says so', async (t) => {
  const { teller, sent, clock } = node(t, undefined)
  teller.desired(asking)
  await clock.settle()
  t.match(sent, [{ complete: true, store: 'store-2' }])
})

test('what that very store wanted before the node was deleted there does not come back', async (t) => {
  const { teller, sent, clock } = node(t, { ...known, store: 'store-2' })
  teller.desired(asking)
  await clock.settle()
  t.same(
    sent.map(({ pods, secrets, complete }) => [pods, secrets, complete]),
    [[undefined, undefined, true]],
  )
})

test('pods that the controller does not take back are accepted of', async (t) => {
  const because = 'Pod default/web of node pi-1 was not restored'
  const { teller, sent, clock, answers, log } = node(t, known)
  answers.push({ status: 201, body: { kind: 'Status', message: because }, dateHeader: undefined })
  teller.desired(asking)
  await clock.settle()
  t.equal(sent.at(-1)?.complete, true)
  t.same(log.messages('warn'), ['Pods that run here end: the controller did not take them back'])
})

test('a controller that cannot be accepted is tried again, and nothing counts meanwhile', async (t) => {
  const { teller, heard, sent, clock, answers, log } = node(t, known)
  answers.push(failureStatus(500, 'no'), new Error('no answer'))
  teller.desired(asking)
  await clock.advance(5 * 60_000)
  t.same(heard, [])
  t.equal(sent.at(-1)?.complete, true)
  t.equal(log.messages('warn').length, 1)
})

test('more than one message can carry goes in parts', async (t) => {
  const big = (name: string) => aPod({ name, metadata: { annotations: { big: 'x'.repeat(75_000) } } })
  const { teller, sent, clock } = node(t, { ...known, pods: [big('a'), big('b'), aPod({ name: 'c' })], secrets: [] })
  teller.desired(asking)
  await clock.settle()
  t.same(
    sent.map(({ pods = [] }) => pods.map(({ metadata }) => metadata.name)),
    [['a'], ['b', 'c'], []],
  )
})

function node(t: Test, remembered: DesiredMessage | undefined) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const sent: NodeCheckpoint[] = []
  const heard: DesiredMessage[] = []
  const answers: (ApiAnswer | Error)[] = []
  const world = { accepted: 0 }
  const teller = checkpointTeller({
    api: {
      post: async (_path, body) => {
        const answer = answers.shift() ?? { status: 201, body: {}, dateHeader: undefined }
        if (answer instanceof Error) throw answer
        if (answer.status === 201) sent.push(body as NodeCheckpoint)
        return answer
      },
    },
    nodeName: 'pi-1',
    remembered: async () => remembered,
    desired: (message) => void heard.push(message),
    accepted: () => world.accepted++,
    clock,
    random: () => 0.5,
    log,
  })
  const stop = new AbortController()
  const running = teller.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return { teller, heard, sent, clock, answers, log, world }
}
