import { test } from 'tap'
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import { newestOutbox, type OutboxLink } from './publish-queue.ts'

/** A link that takes what it is given when the test says so. */
function slowLink() {
  const given: { topic: string; body: string; take(): void; fail(): void }[] = []
  let abandoned = 0
  const link: OutboxLink = {
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
const digestOf = (...said: readonly (readonly [string, string])[]) =>
  said.map(([topic, body]) => digestText(topic, body)).reduce(foldDigest, emptyDigest)

test('what changes while the broker is slow is said once, the newest', async (t) => {
  const [outbox, slow] = [newestOutbox({ mostQueued: 10 }), slowLink()]
  outbox.open(slow.link)
  for (const body of ['1', '2', '3', '4']) outbox.publishState('status', body)
  t.same(slow.bodies(), ['1'])
  t.equal(outbox.digest(), digestOf(['status', '1']), 'the fingerprint is of what was sent, not of what is known')
  await slow.takeAll()
  t.same(slow.bodies(), ['1', '4'])
  t.equal(outbox.digest(), digestOf(['status', '4']))
  await slow.takeAll()
  t.equal(slow.given.length, 2)
})

test('a new link hears all of it, whatever the old one had taken', async (t) => {
  const [outbox, first, second] = [newestOutbox({ mostQueued: 10 }), slowLink(), slowLink()]
  outbox.open(first.link)
  outbox.publishState('status', 'a')
  outbox.publishState('pods/1', 'b')
  await first.takeAll()
  outbox.publishState('pods/1', 'c')
  outbox.closed()
  outbox.publishState('pods/2', 'd')
  outbox.open(second.link)
  t.same(second.bodies(), ['a', 'c', 'd'])
  t.equal(outbox.digest(), digestOf(['status', 'a'], ['pods/1', 'c'], ['pods/2', 'd']))
  await first.takeAll()
  t.equal(second.given.length, 3, 'answers of the old link mean nothing any more')
})

test('what is withdrawn is forgotten once the broker knows', async (t) => {
  const [outbox, first, second] = [newestOutbox({ mostQueued: 10 }), slowLink(), slowLink()]
  outbox.publishState('pods/1', 'a')
  outbox.publishState('pods/1', '')
  outbox.open(first.link)
  t.same(first.bodies(), [''])
  t.equal(outbox.digest(), emptyDigest)
  outbox.closed()
  outbox.open(second.link)
  t.same(second.bodies(), [''], 'nobody has taken it yet')
  await second.takeAll()
  outbox.republish()
  t.equal(second.given.length, 1)
})

test('events go one after the other, and of too many the oldest are dropped', async (t) => {
  const [outbox, slow] = [newestOutbox({ mostQueued: 3 }), slowLink()]
  for (const body of ['1', '2', '3', '4', '5']) outbox.enqueue('events', body)
  t.equal(outbox.dropped(), 2)
  outbox.open(slow.link)
  for (let i = 0; i < 5; i++) await slow.takeAll()
  t.same(slow.bodies(), ['3', '4', '5'])
})

test('a link that does not take a message is given up', async (t) => {
  const [outbox, slow] = [newestOutbox({ mostQueued: 3 }), slowLink()]
  outbox.open(slow.link)
  outbox.publishState('status', '1')
  slow.given[0]?.fail()
  await turn()
  t.equal(slow.abandoned(), 1)
})

test('asked for everything in the middle of it, each thing is said once more', async (t) => {
  const [outbox, slow] = [newestOutbox({ mostQueued: 3 }), slowLink()]
  outbox.open(slow.link)
  outbox.publishState('status', '1')
  outbox.republish()
  outbox.republish()
  for (let i = 0; i < 4; i++) await slow.takeAll()
  t.same(slow.bodies(), ['1', '1'])
})
