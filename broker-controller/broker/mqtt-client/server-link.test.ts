import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { MqttClient } from './mqtt-client.ts'
import { serverLink } from './server-link.ts'

/** A server that accepts while `isUp`. */
function world(isUp = true) {
  const clock = fakeClock()
  const attempts: number[] = []
  const failures: string[] = []
  const state = { isUp, connected: 0 }
  const connection = serverLink({
    async open() {
      attempts.push(clock.monotonicMs())
      if (!state.isUp) throw new Error('refused')
      return fakeClient()
    },
    subscribe: async () => undefined,
    connected: async () => void state.connected++,
    failed: (error) => void failures.push(String(error)),
    isWanted: () => true,
    clock,
    random: () => 1,
  })
  const stop = new AbortController()
  const running = connection.run(stop.signal)
  const end = async () => {
    stop.abort()
    await running
  }
  return { clock, attempts, failures, state, connection, end }
}

function fakeClient(): MqttClient {
  let over: (error: Error) => void = () => undefined
  const ended = new Promise<Error>((resolve) => {
    over = resolve
  })
  return {
    isAnswering: () => true,
    ended,
    abandon: (error) => over(error),
    close: async () => undefined,
    publish: async () => undefined,
    subscribe: async () => undefined,
  }
}

test('the time between attempts grows up to ten seconds, and starts again after a connection that lasted', async (t) => {
  const { clock, attempts, failures, state, connection, end } = world(false)
  t.teardown(end)
  await clock.advance(60_000)
  const waits = attempts.map((atMs, i) => atMs - (attempts[i - 1] ?? 0)).slice(1)
  t.same(waits.slice(0, 6), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  t.equal(connection.client, undefined)
  state.isUp = true
  await clock.advance(10_000)
  t.not(connection.client, undefined)
  t.equal(state.connected, 1)
  await clock.advance(20_000)
  const before = attempts.length
  connection.client?.abandon(new Error('The machine is gone'))
  await clock.advance(500)
  t.equal(attempts.length, before + 1)
  t.match(failures.at(-1), /machine is gone/)
})

test('a server that restarts twice within seconds is waited for no longer the second time', async (t) => {
  const { clock, attempts, state, connection, end } = world()
  t.teardown(end)
  await clock.advance(60_000)
  const restart = async () => {
    const first = attempts.length
    const beganMs = clock.monotonicMs()
    state.isUp = false
    connection.client?.abandon(new Error('The server is gone'))
    await clock.advance(6_500)
    state.isUp = true
    await clock.advance(3_500)
    return attempts.slice(first).map((atMs) => atMs - beganMs)
  }
  t.same(await restart(), [500, 1_500, 3_500, 7_500])
  // The one short connection counts, the attempts before it do not.
  t.same(await restart(), [1_000, 3_000, 7_000])
  t.not(connection.client, undefined)
})

test('a server that closes each connection at once gets fewer and fewer', async (t) => {
  const { clock, attempts, connection, end } = world()
  t.teardown(end)
  for (let i = 0; i < 600; i++) {
    connection.client?.abandon(new Error('closed'))
    await clock.advance(100)
  }
  const waits = attempts.map((atMs, i) => atMs - (attempts[i - 1] ?? 0)).slice(1)
  t.ok(waits.length < 12 && (waits.at(-1) ?? 0) >= 10_000, waits.join(' '))
})

test('while it is paused there is no connection, and then one at once', async (t) => {
  const { clock, attempts, connection, end } = world()
  t.teardown(end)
  await clock.settle()
  t.not(connection.client, undefined)
  connection.pause(true)
  await clock.advance(60_000)
  t.equal(connection.client, undefined)
  t.equal(attempts.length, 1)
  connection.pause(false)
  await clock.settle()
  t.not(connection.client, undefined)
})

test('an interrupted connection is opened again', async (t) => {
  const { clock, attempts, connection, end } = world()
  t.teardown(end)
  await clock.settle()
  connection.interrupt('The controller has another certificate')
  await clock.advance(1_000)
  t.equal(attempts.length, 2)
  t.not(connection.client, undefined)
})
