import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import { type PublishLink, publishQueue } from './publish-queue.ts'

/** A link that acknowledges messages at the test's command. */
function slowLink() {
  const given: { topic: string; body: string; retain: boolean; take(): void; fail(): void }[] = []
  let abandoned = 0
  const link: PublishLink = {
    publish: (topic, body, { retain }) =>
      new Promise((resolve, reject) => {
        given.push({ topic, body, retain, take: resolve, fail: () => reject(new Error('no answer')) })
      }),
    abandon: () => void abandoned++,
  }
  const takeAll = async () => {
    for (const one of given) one.take()
    await turn()
  }
  return { link, given, takeAll, abandoned: () => abandoned, bodies: () => given.map(({ body }) => body) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const digestOf = (...states: readonly (readonly [string, string])[]) =>
  states.map(([topic, body]) => digestText(topic, body)).reduce(foldDigest, emptyDigest)

test('while the broker is slow only the newest state is published', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 10 }), slowLink()]
  queue.open(slow.link)
  for (const body of ['1', '2', '3', '4']) queue.publishState('status', body)
  t.same(slow.bodies(), ['1'])
  t.equal(queue.digest(), digestOf(['status', '1']), 'the digest covers published states, not newer ones')
  await slow.takeAll()
  t.same(slow.bodies(), ['1', '4'])
  t.equal(queue.digest(), digestOf(['status', '4']))
  await slow.takeAll()
  t.equal(slow.given.length, 2)
})

test('all states are published on a new link, also those acknowledged on the old one', async (t) => {
  const [queue, first, second] = [publishQueue({ mostQueued: 10 }), slowLink(), slowLink()]
  queue.open(first.link)
  queue.publishState('status', 'a')
  queue.publishState('pods/1', 'b')
  await first.takeAll()
  queue.publishState('pods/1', 'c')
  queue.closed()
  queue.publishState('pods/2', 'd')
  queue.open(second.link)
  t.same(second.bodies(), ['a', 'c', 'd'])
  t.equal(queue.digest(), digestOf(['status', 'a'], ['pods/1', 'c'], ['pods/2', 'd']))
  await first.takeAll()
  t.equal(second.given.length, 3, 'acknowledgements of the old link are ignored')
})

test('a deleted state is forgotten after its acknowledgement', async (t) => {
  const [queue, first, second] = [publishQueue({ mostQueued: 10 }), slowLink(), slowLink()]
  queue.publishState('pods/1', 'a')
  queue.publishState('pods/1', '')
  queue.open(first.link)
  t.same(first.bodies(), [''])
  t.equal(queue.digest(), emptyDigest)
  queue.closed()
  queue.open(second.link)
  t.same(second.bodies(), [''], 'it is not acknowledged yet')
  await second.takeAll()
  queue.republish()
  t.equal(second.given.length, 1)
})

test('events are published in order, and of too many the oldest are dropped', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  for (const body of ['1', '2', '3', '4', '5']) queue.enqueue('events', body)
  t.equal(queue.dropped(), 2)
  queue.open(slow.link)
  for (let i = 0; i < 5; i++) await slow.takeAll()
  t.same(slow.bodies(), ['3', '4', '5'])
})

test('a link that does not acknowledge a message is closed', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  queue.open(slow.link)
  queue.publishState('status', '1')
  slow.given[0]?.fail()
  await turn()
  t.equal(slow.abandoned(), 1)
})

test('a request for all states publishes each one once more', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  queue.open(slow.link)
  queue.publishState('status', '1')
  queue.republish()
  queue.republish()
  for (let i = 0; i < 4; i++) await slow.takeAll()
  t.same(slow.bodies(), ['1', '1'])
})

test('states are retained by the broker, events are not', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  queue.open(slow.link)
  queue.publishState('status', '1')
  queue.enqueue('events', '2')
  t.match(slow.given, [
    { topic: 'status', retain: true },
    { topic: 'events', retain: false },
  ])
})

test('a state is acknowledged when its latest text was acknowledged on this link', async (t) => {
  const [queue, first, second] = [publishQueue({ mostQueued: 3 }), slowLink(), slowLink()]
  const isAcknowledged = () => queue.isAcknowledged('status')
  t.equal(isAcknowledged(), false, 'there is no such state')
  queue.publishState('status', '1')
  t.equal(isAcknowledged(), false, 'there is no link')
  queue.open(first.link)
  t.equal(isAcknowledged(), false, 'it is under way')
  await first.takeAll()
  t.equal(isAcknowledged(), true)
  t.equal(queue.isAcknowledged('pods/1'), false)
  queue.publishState('status', '2')
  t.equal(isAcknowledged(), false)
  await first.takeAll()
  t.equal(isAcknowledged(), true)
  queue.closed()
  t.equal(isAcknowledged(), false, 'the link is closed')
  queue.open(second.link)
  t.equal(isAcknowledged(), false, 'published again on the new link')
  queue.publishState('status', '')
  await second.takeAll()
  await second.takeAll()
  t.equal(isAcknowledged(), false, 'it is deleted')
})

test('the queue is idle when nothing is under way, or without a link', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  queue.publishState('status', '1')
  queue.enqueue('events', '2')
  t.equal(queue.isIdle(), true, 'without a link nothing can be under way')
  queue.open(slow.link)
  t.equal(queue.isIdle(), false)
  slow.given.find(({ topic }) => topic === 'status')?.take()
  await turn()
  t.equal(queue.isIdle(), false, 'the event is under way')
  slow.given.find(({ topic }) => topic === 'events')?.take()
  await turn()
  t.equal(queue.isIdle(), true)
  queue.publishState('status', '3')
  t.equal(queue.isIdle(), false, 'the state is under way')
  queue.closed()
  t.equal(queue.isIdle(), true)
})

test('one event is under way at a time, and one that was dropped meanwhile takes no other with it', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 2 }), slowLink()]
  queue.open(slow.link)
  for (const body of ['1', '2', '3']) queue.enqueue('events', body)
  t.same(slow.bodies(), ['1'])
  t.equal(queue.dropped(), 1, 'the one under way is the oldest')
  t.equal(queue.dropped(), 0, 'counted once')
  for (let i = 0; i < 3; i++) await slow.takeAll()
  t.same(slow.bodies(), ['1', '2', '3'])
})

test('an event that was under way when the link closed is published again, and its late acknowledgement is ignored', async (t) => {
  const [queue, first, second] = [publishQueue({ mostQueued: 3 }), slowLink(), slowLink()]
  queue.open(first.link)
  for (const body of ['1', '2']) queue.enqueue('events', body)
  queue.closed()
  queue.open(second.link)
  await first.takeAll()
  t.same(first.bodies(), ['1'])
  t.same(second.bodies(), ['1'])
  for (let i = 0; i < 2; i++) await second.takeAll()
  t.same(second.bodies(), ['1', '2'])
})

test('a link that does not acknowledge an event is closed', async (t) => {
  const [queue, slow] = [publishQueue({ mostQueued: 3 }), slowLink()]
  queue.open(slow.link)
  queue.enqueue('events', '1')
  slow.given[0]?.fail()
  await turn()
  t.equal(slow.abandoned(), 1)
})

test('each acknowledged state is passed on, as it was published', async (t) => {
  const seen: string[] = []
  const acknowledged = (topic: string, body: string) => void seen.push(`${topic} ${body}`)
  const [queue, slow] = [publishQueue({ mostQueued: 3, acknowledged }), slowLink()]
  queue.open(slow.link)
  queue.publishState('status', '1')
  queue.publishState('status', '2')
  t.same(seen, [])
  await slow.takeAll()
  t.same(seen, ['status 1'])
  await slow.takeAll()
  t.same(seen, ['status 1', 'status 2'])
})
