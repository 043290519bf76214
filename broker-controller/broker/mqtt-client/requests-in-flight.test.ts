import { test } from 'tap'
import { requestsInFlight } from './requests-in-flight.ts'

const puback = (messageId: number) => ({ cmd: 'puback', messageId }) as const

test('packets beyond the limit wait for an acknowledgement, in their order', async (t) => {
  const written: string[] = []
  const requests = requestsInFlight((packet) => void written.push(packet.toString()), 2)
  const done: string[] = []
  for (const name of ['a', 'b', 'c', 'd']) {
    void requests.send((id) => Buffer.from(`${name}${id}`)).then(() => void done.push(name))
  }
  t.same(written, ['a1', 'b2'])
  requests.acknowledged(puback(2))
  requests.acknowledged(puback(2))
  t.same(written, ['a1', 'b2', 'c3'], 'an acknowledgement that comes twice counts once')
  requests.acknowledged(puback(1))
  requests.acknowledged(puback(99))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(done, ['b', 'a'])
  t.same(written, ['a1', 'b2', 'c3', 'd4'])
})

test('what waits is rejected when the connection ends, and what comes later, too', async (t) => {
  const requests = requestsInFlight(() => undefined, 1)
  const waiting = ['a', 'b'].map((name) => requests.send(() => Buffer.from(name)))
  requests.end(new Error('closed'))
  for (const one of waiting) await t.rejects(one, /closed/)
  await t.rejects(
    requests.send(() => Buffer.alloc(1)),
    /closed/,
  )
})

test('a number that still waits is not used again', async (t) => {
  const ids: number[] = []
  const requests = requestsInFlight(() => undefined)
  const send = () =>
    void requests.send((id) => {
      ids.push(id)
      return Buffer.alloc(1)
    })
  send()
  for (let i = 2; i <= 65_535; i++) {
    send()
    requests.acknowledged(puback(i))
  }
  send()
  t.equal(ids.at(-1), 2, 'the first is not acknowledged')
})
