import { test } from 'tap'
import { nodeIdentity } from '../../../api/identity.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'
import { podsPath, sentNode, sentPod } from '../../testing/sent-objects.ts'

const eventsPath = '/api/v1/namespaces/default/events'
const anEvent = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name },
  involvedObject: { kind: 'Node', name: 'pi-01' },
  ...more,
})

test('an object that is larger than etcd would take is refused, also where a patch makes it so', async (t) => {
  const { ask } = await anApi(t)
  const annotations = (letter: string) => ({ [letter]: 'x'.repeat(200_000) })
  const args = (letter: string) => ({ containers: [{ name: letter, image: 'a', args: ['x'.repeat(1_500_000)] }] })
  const body = sentPod('large', args('a'))
  t.match(await ask('POST', podsPath, { body }), { code: 201 })
  const patch = { type: patchTypes.merge, body: { metadata: { annotations: annotations('a') } } }
  t.match(await ask('PATCH', `${podsPath}/large`, patch), {
    code: 413,
    body: {
      reason: 'RequestEntityTooLarge',
      message: /^Request entity too large: Pod "large" would have \d+ bytes, the limit is 1572864$/,
    },
  })
  const larger = { containers: [...args('a').containers, ...args('b').containers] }
  t.match(await ask('POST', podsPath, { body: sentPod('larger', larger) }), { code: 413 })
})

test('a Node and an Event have smaller limits', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  t.match(await ask('POST', '/api/v1/nodes', { as, body: sentNode('pi-01') }), { code: 201 })
  const images = [{ names: ['x'.repeat(600_000)] }]
  const status = { as, type: patchTypes.merge, body: { status: { images } } }
  t.match(await ask('PATCH', '/api/v1/nodes/pi-01/status', status), { code: 413 })
  const labels = { note: 'x'.repeat(20_000) }
  t.match(await ask('POST', eventsPath, { body: anEvent('large', { metadata: { annotations: labels } }) }), {
    code: 413,
  })
})

test('the message of an event is cut as Kubernetes cuts it', async (t) => {
  const { ask } = await anApi(t)
  const body = anEvent('long', { message: 'x'.repeat(5000), reason: 'R'.repeat(500) })
  const { body: made } = await ask('POST', eventsPath, { body })
  t.same([made['message'], made['reason']], [`${'x'.repeat(1020)} ...`, 'R'.repeat(128)])
  const longer = { type: patchTypes.merge, body: { message: 'y'.repeat(5000) } }
  t.match(await ask('PATCH', `${eventsPath}/long`, longer), { body: { message: `${'y'.repeat(1020)} ...` } })
})

test('a node writes events in its own name only', async (t) => {
  const { ask } = await anApi(t)
  const as = nodeIdentity('pi-01')
  const body = anEvent('own', { source: { component: 'kubelet', host: 'pi-02' } })
  t.match(await ask('POST', eventsPath, { as, body }), { code: 201, body: { source: { host: 'pi-01' } } })
  const again = { type: patchTypes.merge, body: { count: 2 } }
  t.match(await ask('PATCH', `${eventsPath}/own`, { as, ...again }), { code: 200 })
  t.match(await ask('PATCH', `${eventsPath}/own`, { as: nodeIdentity('pi-02'), ...again }), { code: 403 })
  await ask('POST', eventsPath, { body: anEvent('other', { source: { component: 'me' } }) })
  t.match(await ask('PATCH', `${eventsPath}/other`, { as, ...again }), { code: 403 })
})

test('a node shows a bounded number of its own pods, each of a bounded size', async (t) => {
  const { ask, store } = await anApi(t)
  const as = nodeIdentity('pi-01')
  const { body: node } = await ask('POST', '/api/v1/nodes', { as, body: sentNode('pi-01') })
  const { uid } = node['metadata'] as { uid: string }
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid, controller: true }
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  const mirror = (name: string, args: readonly string[] = []) =>
    sentPod(
      name,
      { nodeName: 'pi-01', containers: [{ name: 'a', image: 'a', args }] },
      { annotations, ownerReferences: [owner] },
    )
  t.match(await ask('POST', podsPath, { as, body: mirror('large', ['x'.repeat(70_000)]) }), { code: 403 })
  const codes: number[] = []
  while (codes.length < 600 && codes.at(-1) !== 403) {
    codes.push((await ask('POST', podsPath, { as, body: mirror(`static-${codes.length}`) })).code)
  }
  t.equal(codes.length, 111, 'as many as pods on a node, where its status has no capacity')

  const present = await store.get('nodes', { namespace: '', name: 'pi-01' })
  if (present === undefined) return t.fail('no node')
  await store.updateStatus('nodes', { ...present, status: { capacity: { pods: '100000' } } })
  while (codes.length < 600 && (codes.length === 111 || codes.at(-1) !== 403)) {
    codes.push((await ask('POST', podsPath, { as, body: mirror(`static-${codes.length}`) })).code)
  }
  t.equal(codes.filter((code) => code === 201).length, 500, 'and never more, whatever it reports')
})
