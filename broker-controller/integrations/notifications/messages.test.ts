import { test } from 'tap'
import { growth, linearAtMost } from '../../../daemon/testing/growth.ts'
import { messageFor } from './messages.ts'
import type { FleetProblem } from './problems.ts'

const lost = (name: string, group?: string): FleetProblem => ({
  ...{ key: `NodeNotReady/${name}`, kind: 'NodeNotReady', namespace: '', name, text: `Node ${name} is not ready` },
  ...(group !== undefined && { group }),
})
const crashing = (namespace: string): FleetProblem => ({
  ...{ key: namespace, kind: 'PodCrashLooping', namespace, name: `${namespace}/web` },
  text: `Pod ${namespace}/web crashes`,
})
const everything = { kinds: undefined, namespaces: undefined }

test('an access point that fails is one line, which names it', async (t) => {
  const firing = ['pi-3', 'pi-1', 'pi-2'].map((name) => lost(name, 'link ap-kitchen'))
  t.same(messageFor({ firing: [...firing, lost('pi-9', 'zone attic')], resolved: [] }, everything), {
    status: 'firing',
    title: '4 problems',
    text: '3 nodes of link ap-kitchen are not ready: pi-1, pi-2, pi-3\nNode pi-9 is not ready',
    count: 4,
  })
})

test('a thousand nodes and a thousand problems are a short message', async (t) => {
  const nodes = Array.from({ length: 1000 }, (_, i) => lost(`pi-${i}`, 'zone hall'))
  const others = Array.from({ length: 1000 }, (_, i) => lost(`other-${i}`))
  const message = messageFor({ firing: [...nodes, ...others], resolved: [] }, everything)
  t.match(message?.text, /^1000 nodes of zone hall are not ready: .* and 990 more\n/)
  t.match(message?.text, /\nand 981 more$/)
  t.equal(message?.text.split('\n').length, 21)
})

test('the cost of a message grows with its problems, not with their square', async (t) => {
  const cost = growth(3_000, (count) => {
    const firing = Array.from({ length: count }, (_, i) => lost(`pi-${i}`, 'zone hall'))
    return () => messageFor({ firing, resolved: [] }, everything)
  })
  t.ok(cost < linearAtMost, `${cost} times for 8 times the nodes`)
})

test('what is over is marked; a message of such problems only has its own title', async (t) => {
  t.match(messageFor({ firing: [], resolved: [lost('pi-1')] }, everything), {
    status: 'resolved',
    title: '1 problem resolved',
    text: 'Resolved: Node pi-1 is not ready',
  })
  t.match(messageFor({ firing: [lost('pi-2')], resolved: [lost('pi-1')] }, everything), {
    status: 'firing',
    title: '1 problem',
    text: 'Node pi-2 is not ready\nResolved: Node pi-1 is not ready',
    count: 2,
  })
})

test('a channel gets the kinds and namespaces that it names; nodes are in no namespace', async (t) => {
  const batch = { firing: [lost('pi-1'), crashing('shop'), crashing('test')], resolved: [] }
  t.match(messageFor(batch, { kinds: undefined, namespaces: ['shop'] }), { count: 2 })
  t.match(messageFor(batch, { kinds: ['PodCrashLooping'], namespaces: ['shop'] }), { text: 'Pod shop/web crashes' })
  t.equal(messageFor(batch, { kinds: ['PodFailed'], namespaces: undefined }), undefined)
})
