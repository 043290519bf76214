import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import { type PublishLink, publishQueue } from './publish-queue.ts'

/** A link that acknowledges messages at the test's command. */
function slowLink() {
  const given: { topic: string; body: string; take(): void; fail(): void }[] = []
  let abandoned = 0
  const link: PublishLink = {
    publish: (topic, body) =>
      new Promise((resolve, reject) => {
        given.push({ topic, body, take: resolve, fail: () => reject(new Error('no answer')) })
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
