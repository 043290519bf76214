import { test } from 'tap'
import { nodeIdentity } from '../../../api/identity.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'
import { nodeAnnotationProblems, refuseOtherKey, refuseTakenKey, withoutKey } from './node-annotations.ts'

const key = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg='
const other = 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0='
const administrator = { user: 'kubernetes-admin', groups: ['system:masters'] }
const withKey = (value: string) =>
  aNode({ name: 'pi-1', annotations: { note: 'x', 'bramble.dev/wireguard-public-key': value } })

test('the public key of a node is set by the node alone', async (t) => {
  const without = aNode({ name: 'pi-1' })
  const [self, neighbour] = [nodeIdentity('pi-1'), nodeIdentity('pi-2')]
  refuseOtherKey(withKey(key), self, without)
  refuseOtherKey(withKey(key), self, withKey(other))
  for (const one of [administrator, neighbour]) {
    t.throws(() => refuseOtherKey(withKey(key), one, without), { message: /only the node itself/ })
    t.throws(() => refuseOtherKey(withKey(key), one, withKey(other)), { message: /forbidden/ })
    refuseOtherKey(withKey(key), one, withKey(key))
    refuseOtherKey(without, one, withKey(key))
  }
  t.same(withoutKey(withKey(key)).metadata.annotations, { note: 'x' }, 'a new Node has none')
  t.equal(withoutKey(without), without)
})

test('a key that another Node has is refused', async (t) => {
  const without = aNode({ name: 'pi-1' })
  const copy = aNode({ name: 'pi-2', annotations: { 'bramble.dev/wireguard-public-key': key } })
  const all = async () => [without, copy]
  await t.rejects(refuseTakenKey(withKey(key), without, all), {
    message: /node "pi-2" has the same WireGuard key: remove/,
  })
  await refuseTakenKey(withKey(other), without, all)
  await refuseTakenKey(withKey(key), withKey(key), all)
  await refuseTakenKey(without, withKey(key), all)
})

test('values that other nodes could not use are refused, unless the Node had them before', async (t) => {
  const fields = (annotations: { readonly [name: string]: string }, old = {}) =>
    nodeAnnotationProblems(aNode({ annotations }), aNode({ annotations: old })).map(({ field }) => field)
  const wrong = {
    'bramble.dev/wireguard-public-key': 'short',
    'bramble.dev/wireguard-endpoint': 'here',
    'bramble.dev/relay': 'yes',
  }
  t.same(
    fields(wrong),
    Object.keys(wrong).map((name) => `metadata.annotations[${name}]`),
  )
  t.same(fields(wrong, wrong), [])
  t.equal(nodeAnnotationProblems(aNode({ annotations: wrong })).length, 3)
  t.same(fields({ 'bramble.dev/wireguard-endpoint': 'none', 'bramble.dev/relay': 'false', other: '' }), [])
})

test('the right to write the status of a Node is not the right to reboot its machine', async (t) => {
  const { ask, store } = await anApi(t)
  const requested = { 'bramble.dev/reboot-requested-at': '2026-01-02T03:04:05Z' }
  await store.create('nodes', aNode({ name: 'pi-1', annotations: requested }))
  const written = async (path: string, annotations: { readonly [name: string]: string | null }) =>
    (await ask('PATCH', `/api/v1/nodes/pi-1${path}`, { type: patchTypes.merge, body: { metadata: { annotations } } }))
      .code
  const other = { 'bramble.dev/reboot-requested-at': '2026-01-02T03:05:06Z' }
  t.equal(await written('/status', other), 403)
  t.equal(await written('/status', { 'bramble.dev/reboot-requested-at': null }), 403)
  t.equal(await written('/status', { 'bramble.dev/reboot-status': '{}' }), 403)
  t.equal(await written('/status', { 'bramble.dev/agent-release': '{}' }), 403)
  t.equal(await written('/status', { 'bramble.dev/maintenance': '{}' }), 403)
  t.equal(await written('/status', { 'bramble.dev/cordoned-by': 'maintenance' }), 403)
  t.equal(await written('/status', { ...requested, note: 'x' }), 200)
  t.equal(await written('', other), 200)
})
