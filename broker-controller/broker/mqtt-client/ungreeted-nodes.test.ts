import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { ungreetedNodes } from './ungreeted-nodes.ts'

test('nodes whose heartbeat comes without a connection message are greeted together, once', async (t) => {
  const clock = fakeClock()
  const greetings: (readonly string[])[] = []
  const nodes = ungreetedNodes(clock, (some) => void greetings.push(some))
  nodes.connected('pi-1')
  for (const node of ['pi-1', 'pi-2', 'pi-3', 'pi-2']) nodes.renewed(node)
  t.same(greetings, [])
  await clock.advance(1_000)
  t.same(greetings, [['pi-2', 'pi-3']])
  nodes.renewed('pi-2')
  await clock.advance(1_000)
  t.equal(greetings.length, 1)
  nodes.reset()
  nodes.renewed('pi-1')
  await clock.advance(1_000)
  t.same(greetings.at(-1), ['pi-1'], 'on another connection everything may have been lost')
})

test('a machine that gets the name of a deleted Node is greeted, too', async (t) => {
  const clock = fakeClock()
  const greetings: (readonly string[])[] = []
  const nodes = ungreetedNodes(clock, (some) => void greetings.push(some))
  nodes.connected('pi-1')
  nodes.created('pi-1')
  nodes.renewed('pi-1')
  await clock.advance(1_000)
  t.same(greetings, [], 'its connection message arrived')
  nodes.deleted('pi-1')
  nodes.renewed('pi-1')
  await clock.advance(1_000)
  t.equal(greetings.length, 1, 'the machine of before still had rights')
  nodes.created('pi-1')
  nodes.renewed('pi-1')
  await clock.advance(1_000)
  t.equal(greetings.length, 2)
  nodes.deleted('pi-1')
  await clock.advance(60_000)
  nodes.renewed('pi-1')
  await clock.advance(1_000)
  t.equal(greetings.length, 3)
})
