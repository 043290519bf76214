import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { type Identity, nodeIdentity, peerControllerIdentity } from '../../../api/identity.ts'
import { identityHeader } from '../proxy/proxy-headers.ts'
import { identityHeaderValue, remoteSender } from './remote-identity.ts'

const user: Identity = {
  user: 'système:node:ü, x',
  groups: ['system:nodes', 'a, b', 'c\r\nd'],
  uid: '1',
  extra: { 'bramble.dev/proven-node': ['pi-1'] },
}
const controllers = { isController: async (fingerprint: string) => fingerprint === 'aa' }
const shown = { trusted: true, fingerprint: 'aa' }
const headers = { [identityHeader]: identityHeaderValue(user), 'x-forwarded-for': '8.8.8.8, 10.0.0.7' }

test('a request that a controller passes on has the identity and the address of its sender', async (t) => {
  t.same(await remoteSender({ certificate: shown, headers }, controllers), {
    identity: user,
    via: 'aa',
    address: '10.0.0.7',
  })
  const plain = { ...headers, [identityHeader]: identityHeaderValue({ user: 'a', groups: [] }) }
  t.same((await remoteSender({ certificate: shown, headers: plain }, controllers))?.identity, { user: 'a', groups: [] })
  const unknown = { ...headers, [identityHeader]: identityHeaderValue(undefined) }
  t.same(await remoteSender({ certificate: shown, headers: unknown }, controllers), { via: 'aa', address: '10.0.0.7' })
})

test('the header of anyone else is ignored', async (t) => {
  t.equal(await remoteSender({ certificate: undefined, headers }, controllers), undefined, 'no certificate')
  const other = { trusted: true, fingerprint: 'bb' }
  t.equal(await remoteSender({ certificate: other, headers }, controllers), undefined, 'not of a controller')
  const untrusted = { trusted: false, fingerprint: 'aa' }
  t.equal(await remoteSender({ certificate: untrusted, headers }, controllers), undefined, 'another authority')
  t.equal(await remoteSender({ certificate: { trusted: true }, headers }, controllers), undefined)
  const twice = { ...headers, [identityHeader]: [identityHeaderValue(user), identityHeaderValue(user)] }
  t.equal(await remoteSender({ certificate: shown, headers: twice }, controllers), undefined, 'two headers')
  t.equal(await remoteSender({ certificate: shown, headers: {} }, controllers), undefined, 'no header')
})

test('a controller that is not registered yet is asked to try again, and no other client', async (t) => {
  const early = { trusted: true, fingerprint: 'bb', identity: peerControllerIdentity }
  const error = await remoteSender({ certificate: early, headers }, controllers).catch((refused: unknown) => refused)
  t.ok(isApiError(error, 'ServiceUnavailable') && error.details?.retryAfterSeconds === 1, String(error))
  t.equal(await remoteSender({ certificate: { ...early, trusted: false }, headers }, controllers), undefined)
  const node = { ...early, identity: nodeIdentity('pi-1') }
  t.equal(await remoteSender({ certificate: node, headers }, controllers), undefined)
})

test('a header that cannot be decoded is refused', async (t) => {
  for (const value of ['', 'W10', '@@@', Buffer.from('{"identity":{"user":1,"groups":[]}}').toString('base64url')]) {
    const error = await remoteSender({ certificate: shown, headers: { [identityHeader]: value } }, controllers).catch(
      (refused: unknown) => refused,
    )
    t.ok(isApiError(error, 'BadRequest'), value)
  }
})
