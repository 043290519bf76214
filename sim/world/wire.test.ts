import { test } from 'tap'
import { beginLife } from './life.ts'
import { randomSource } from './random-source.ts'
import { simulatedNetwork } from './simulated-network.ts'
import { simulatedTime } from './simulated-time.ts'
import { openWire } from './wire.ts'

function aWire() {
  const time = simulatedTime()
  const random = randomSource(1)
  const network = simulatedNetwork(time, random)
  const client = { life: beginLife({ time, random: random.next }), machine: 'a' }
  const server = { life: beginLife({ time, random: random.next }), machine: 'b' }
  const [near, far] = openWire<string, string>(network, client, server)
  const events: string[] = []
  near.listen(
    (text) => events.push(`a: ${text}`),
    ({ message }) => events.push(`a: ${message}`),
  )
  far.listen(
    (text) => events.push(`b: ${text}`),
    ({ message }) => events.push(`b: ${message}`),
  )
  const passed = (ms: number) => time.runUntil(time.nowMs + ms)
  return { time, network, client, server, near, far, events, passed }
}

test('messages arrive in order, also those that were sent while the path was cut', async (t) => {
  const { network, near, events, passed } = aWire()
  near.send('1')
  await passed(3_000)
  network.cut('a', 'b')
  for (const text of ['2', '3']) near.send(text, 10)
  await passed(5_000)
  t.same(events, ['b: 1'])
  t.equal(near.waitingBytes, 20)
  network.heal('a', 'b')
  await passed(60_000)
  t.same(events, ['b: 1', 'b: 2', 'b: 3'])
  t.equal(near.waitingBytes, 0)
})

test('the kernel closes the connections of a program that is killed; those of a machine without power stay open', async (t) => {
  const killed = aWire()
  killed.server.life.end('killed')
  await killed.passed(5_000)
  t.same(killed.events, ['a: The connection was closed by the other side'])

  const off = aWire()
  off.network.setUp('b', false)
  off.server.life.end('power')
  off.near.send('1')
  await off.passed(60_000)
  t.same(off.events, [])
  off.network.setUp('b', true)
  await off.passed(60_000)
  t.same(off.events, ['a: read ECONNRESET'], 'a machine that has no such connection any more resets it')
})

test('nothing of a program goes on after its end', async (t) => {
  const { client, passed } = aWire()
  const events: string[] = []
  void client.life.clock.sleep(1_000).then(() => events.push('woken'))
  void client.life.within(async () => 'done').then(() => events.push('done'))
  client.life.end('power')
  void client.life.within(async () => events.push('begun'))
  await passed(5_000)
  t.same(events, [])
})
