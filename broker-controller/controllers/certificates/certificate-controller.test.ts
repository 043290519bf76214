import { createPublicKey } from 'node:crypto'
import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import { encodeToken } from '../../../api/node/bootstrap-token.ts'
import { newKey } from '../../../certs/authority.ts'
import { createClientCSR } from '../../../certs/client-csr.ts'
import { rfc3339, rfc3339Micro } from '../../../daemon/clock.ts'
import { revoke } from '../../store/revocations.ts'
import type { Store } from '../../store/store.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { uncertainStore } from '../../testing/uncertain-store.ts'
import { type CertificateNeeds, certificateController } from './certificate-controller.ts'
import type { ClientCertificateSigner } from './client-certificates.ts'
import type { CertificateSigner } from './request-answers.ts'
import { tokenCleaner } from './token-cleaner.ts'

/** A request's text is the name it asks for, and `#KEY` for which key; `!` makes it a wrong one. */
const checkRequest: CertificateNeeds['checkRequest'] = (pem, { expectedName }) => {
  if (pem.startsWith('!')) return { ok: false, reason: 'organization must be exactly system:nodes' }
  const [nodeName = '', keyHash = 'a key'] = pem.split('#')
  if (expectedName !== undefined && expectedName !== nodeName) return { ok: false, reason: 'another node' }
  return { ok: true, nodeName, keyHash, publicKey }
}
const signer: CertificateSigner = ({ nodeName }, { expirationSeconds }) =>
  `certificate of ${nodeName} for ${expirationSeconds ?? 'a year'}`
const clientSigner: ClientCertificateSigner = ({ user }, { notBeforeMs = 0 }) =>
  `certificate of ${user} from ${notBeforeMs}`
const publicKey = createPublicKey(newKey())

type Request = {
  name: string
  asks: string
  user?: string
  groups?: readonly string[]
  board?: string
  machineID?: string
  signerName?: string
  /** The node whose certificate was shown beside the token. */
  proves?: string
}

const joining = { user: 'system:bootstrap:abcdef', token: { namespace: 'kube-system', name: 'bootstrap-token-abcdef' } }

async function ensureToken({ store, clock }: Fleet, lifeMs = 24 * 3_600_000): Promise<void> {
  if ((await store.get('secrets', joining.token)) !== undefined) return
  const expiration = rfc3339(clock.wallMs() + lifeMs)
  const token = {
    id: 'abcdef',
    secret: '0123456789abcdef',
    expiration,
    usages: ['authentication'],
    groups: [],
  } as const
  await store.create('secrets', encodeToken(token))
}

async function ask(world: Fleet, { name, asks, user = joining.user, groups, ...rest }: Request) {
  const { board = 'one', machineID, signerName, proves } = rest
  const request: CertificateSigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name, annotations: hardware(board, machineID), creationTimestamp: rfc3339(world.clock.wallMs()) },
    spec: {
      request: Buffer.from(asks).toString('base64'),
      signerName: signerName ?? 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: user,
      groups: groups ?? ['system:bootstrappers', 'system:authenticated'],
      ...(proves && { extra: { 'bramble.dev/proven-node': [proves] } }),
    },
  }
  if (user === joining.user) await ensureToken(world)
  await world.store.create('certificatesigningrequests', request)
  await world.clock.settle()
}

const hardware = (boardSerial: string, machineID?: string) => ({
  'bramble.dev/hardware-identity': JSON.stringify({ boardSerial, machineID }),
})

async function answer(world: Fleet, name: string) {
  const csr = await world.store.get('certificatesigningrequests', { namespace: '', name })
  const certificate = csr?.status?.certificate
  return {
    conditions: csr?.status?.conditions?.map(({ type, reason }) => `${type} ${reason}`) ?? [],
    message: csr?.status?.conditions?.[0]?.message,
    certificate: certificate && Buffer.from(certificate, 'base64').toString(),
  }
}

async function approve(world: Fleet, name: string): Promise<void> {
  const csr = await world.store.get('certificatesigningrequests', { namespace: '', name })
  if (csr === undefined) throw new Error(`no request ${name}`)
  const approved = { type: 'Approved', status: 'True', reason: 'KubectlApprove' }
  const conditions = [...(csr.status?.conditions ?? []), approved]
  await world.store.updateStatus('certificatesigningrequests', { ...csr, status: { conditions } })
  await world.clock.settle()
}

function opened(t: Parameters<typeof fleet>[0] & { teardown(end: () => Promise<void>): void }): Fleet {
  const world = fleet(t)
  t.teardown(world.start(certificateController({ ...world, signer, clientSigner, checkRequest }), tokenCleaner(world)))
  return world
}

test('a node revoked by a clock that was ahead gets the remedy, and no certificate that is not valid yet', async (t) => {
  const world = opened(t)
  const rightMs = world.clock.wallMs()
  world.clock.setWall(rightMs + 365 * 24 * 3600_000)
  await revoke(world, 'system:node:pi-1', 'NodeDeleted')
  world.clock.setWall(rightMs)
  await ask(world, { name: 'csr-1', asks: 'pi-1' })
  const { conditions, message, certificate } = await answer(world, 'csr-1')
  t.same([conditions, certificate], [['Denied RevokedAhead'], undefined])
  t.match(message, /revoked until 2027.*kubectl edit configmap -n kube-system bramble-revoked-certificates/)
})

test('a controller that believes it is 1970 takes no node for revoked in the future', async (t) => {
  const world = opened(t)
  await revoke(world, 'system:node:pi-1', 'NodeDeleted')
  world.clock.setWall(1_000)
  await ask(world, { name: 'csr-1', asks: 'pi-1' })
  t.same((await answer(world, 'csr-1')).conditions, ['Approved AutoApproved'])
})

test('a machine with a token gets its certificate', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'csr-1', asks: 'pi-1' })
  t.match(await answer(world, 'csr-1'), {
    conditions: ['Approved AutoApproved'],
    certificate: 'certificate of pi-1 for a year',
  })
})

test('a copied card is reported under any name, two nodes on one machine are not', async (t) => {
  const world = opened(t)
  const machineID = 'as-flashed'
  await world.join({ name: 'pi-1', annotations: hardware('one', machineID) })
  await ask(world, { name: 'csr-1', asks: 'pi-1', machineID, proves: 'pi-1' })
  await ask(world, { name: 'csr-2', asks: 'attic', machineID })
  await ask(world, { name: 'csr-of-another-board', asks: 'attic', board: 'two', machineID: 'of-attic' })
  t.same((await world.store.list('events')).items, [])
  await ask(world, { name: 'csr-3', asks: 'cellar', board: 'two', machineID })
  t.same((await answer(world, 'csr-3')).conditions, ['Approved AutoApproved'])
  const [event] = (await world.store.list('events')).items
  t.match(event, {
    reason: 'CopiedCard',
    involvedObject: { name: 'cellar' },
    message: /machine-id is that of pi-1 too/,
  })
})

test('a live name is refused without a mark of its machine, whatever the asker claims; the operator reads both', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', annotations: hardware('one', 'as-flashed') })
  await ask(world, { name: 'clone', asks: 'pi-1#other', board: 'two', machineID: 'as-flashed' })
  const refused = await answer(world, 'clone')
  t.same(refused.conditions, ['Denied NodeNameInUse'])
  t.match(refused.message, /name pi-1 is in use by another machine that is live/)
  t.notMatch(refused.message, /serial|as-flashed/)
  const [warning] = (await world.store.list('events')).items
  t.match(warning, { type: 'Warning', reason: 'NodeNameInUse', involvedObject: { kind: 'Node', name: 'pi-1' } })
  t.match(warning?.message, /board serial one.*board serial two.*same machine-id.*systemd-machine-id-setup/s)

  await ask(world, { name: 'liar', asks: 'pi-1#other', board: 'one', machineID: 'as-flashed' })
  t.same((await answer(world, 'liar')).conditions, ['Denied NodeNameInUse'], 'the claim of its hardware proves nothing')
  t.equal((await world.store.list('events')).items.length, 1, 'and adds no Event for each request')
})

test('a machine that shows the key of the node joins again, live or not', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', annotations: hardware('one') })
  await ask(world, { name: 'itself', asks: 'pi-1#new', proves: 'pi-1' })
  t.same((await answer(world, 'itself')).conditions, ['Approved AutoApproved'])
  await ask(world, { name: 'again', asks: 'pi-1#new' })
  t.same((await answer(world, 'again')).conditions, ['Approved AutoApproved'], 'for the key that was just certified')
  await ask(world, { name: 'other-proof', asks: 'pi-1#third', proves: 'pi-2' })
  t.same((await answer(world, 'other-proof')).conditions, ['Denied NodeNameInUse'])
})

test('of cards flashed alike that ask in one moment, one gets the name', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'first', asks: 'pi-1#one' })
  await ask(world, { name: 'second', asks: 'pi-1#two' })
  t.same((await answer(world, 'second')).conditions, ['Denied NodeNameInUse'], 'with the same claims')
  await ask(world, { name: 'again', asks: 'pi-1#one', board: 'moved' })
  t.same((await answer(world, 'again')).conditions, ['Approved AutoApproved'], 'the same key may ask again')
  await world.clock.advance(601_000)
  await ask(world, { name: 'later', asks: 'pi-1#two' })
  t.same((await answer(world, 'later')).conditions, ['Approved AutoApproved'], 'the first one never came')
})

test('a key that was let in a moment ago and then revoked needs an operator', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'first', asks: 'pi-1#one' })
  t.same((await answer(world, 'first')).conditions, ['Approved AutoApproved'])
  await world.join({ name: 'pi-1' })
  world.silence('pi-1')
  await world.pass(70)
  await revoke(world, 'system:node:pi-1', 'Stolen')
  await ask(world, { name: 'again', asks: 'pi-1#one' })
  t.same((await answer(world, 'again')).conditions, ['Waiting NodeExists'])
})

test('the name of a node that is offline waits for an operator, whose approval ends the earlier certificates', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', annotations: hardware('one') })
  world.silence('pi-1')
  await world.pass(70)
  await ask(world, { name: 'spare', asks: 'pi-1#other', board: 'two' })
  const waits = await answer(world, 'spare')
  t.same(waits.conditions, ['Waiting NodeExists'])
  t.notMatch(waits.message, /serial/)
  t.match((await world.store.list('events')).items[0]?.message, /kubectl certificate approve spare/)
  await approve(world, 'spare')
  t.match(await answer(world, 'spare'), { certificate: 'certificate of pi-1 for a year' })
  const revoked = await world.store.get('configmaps', {
    namespace: 'kube-system',
    name: 'bramble-revoked-certificates',
  })
  t.match(revoked?.data?.['revoked'], /system:node:pi-1 Replaced/)
})

test('a request for the name of a node that was not Ready is refused when it is', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  await world.report('pi-1', 'False')
  await ask(world, { name: 'copy', asks: 'pi-1#other' })
  await world.report('pi-2', 'False')
  await world.report('pi-2', 'True')
  t.same((await answer(world, 'copy')).conditions, ['Waiting NodeExists'])
  await world.report('pi-1', 'True')
  t.same((await answer(world, 'copy')).conditions, ['Denied NodeNameInUse'])
})

test('a name becomes free when its Node is deleted, and the request that waits gets it', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' })
  world.silence('pi-1')
  await world.pass(70)
  await ask(world, { name: 'spare', asks: 'pi-1#other' })
  t.same((await answer(world, 'spare')).conditions, ['Waiting NodeExists'])
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.clock.settle()
  t.match(await answer(world, 'spare'), { certificate: 'certificate of pi-1 for a year' })
})

test('a request whose token was deleted or has expired does not get a name that becomes free', async (t) => {
  for (const end of ['deleted', 'expired']) {
    const world = opened(t)
    await world.join({ name: 'pi-1' })
    world.silence('pi-1')
    await world.pass(70)
    await ensureToken(world, 60_000)
    await ask(world, { name: 'stolen', asks: 'pi-1#other' })
    if (end === 'deleted') await world.store.delete('secrets', joining.token)
    else await world.pass(60)
    await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
    await world.clock.settle()
    t.match(await answer(world, 'stolen'), { conditions: ['Denied TokenEnded'], certificate: undefined }, end)
  }
})

test('a request that is deleted while it is read does not wait for its name any more', async (t) => {
  const world = fleet(t)
  const read: string[] = []
  const get: Store['get'] = async (resource, key) => {
    const found = await world.store.get(resource, key)
    if (resource !== 'certificatesigningrequests') return found
    read.push(key.name)
    if (read.length > 1) return found
    await world.store.delete('certificatesigningrequests', { namespace: '', name: key.name })
    await world.clock.settle()
    return found
  }
  const store = { ...world.store, get }
  t.teardown(world.start(certificateController({ ...world, store, signer, clientSigner, checkRequest })))
  await world.join({ name: 'pi-1' })
  world.silence('pi-1')
  await world.pass(70)
  await ask(world, { name: 'gone', asks: 'pi-1#other' })
  await world.clock.advance(60_000)
  const before = read.length
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.clock.settle()
  t.same(read.slice(before), [], `read ${before} times before`)
})

test('a name is free for another key as soon as its Node is deleted, however lately it was given', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'first', asks: 'pi-1#one' })
  t.same((await answer(world, 'first')).conditions, ['Approved AutoApproved'])
  await world.join({ name: 'pi-1' })
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.clock.settle()
  await ask(world, { name: 'again', asks: 'pi-1#two' })
  t.same((await answer(world, 'again')).conditions, ['Approved AutoApproved'])
})

test('a name is not given by a token while pods of its deleted Node are bound to it', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' })
  await world.run({ name: 'web', nodeName: 'pi-1' })
  world.silence('pi-1')
  await world.pass(70)
  await ask(world, { name: 'spare', asks: 'pi-1#other' })
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.clock.settle()
  t.match(await answer(world, 'spare'), { conditions: ['Waiting PodsBound'], certificate: undefined })
  await world.store.delete('pods', { namespace: 'default', name: 'web' })
  await world.clock.advance(11_000)
  t.match(await answer(world, 'spare'), { certificate: 'certificate of pi-1 for a year' })
})

test('while checkpoints are accepted a token gives no name by itself', async (t) => {
  const world = fleet(t)
  t.teardown(
    world.start(
      certificateController({
        ...world,
        signer,
        clientSigner,
        checkRequest,
        checkpoints: { isOpen: () => true, onClose: () => undefined },
      }),
    ),
  )
  await ask(world, { name: 'new', asks: 'pi-9' })
  t.same((await answer(world, 'new')).conditions, ['Waiting AcceptsCheckpoints'])
  await ask(world, { name: 'renews', asks: 'pi-1', user: 'system:node:pi-1', groups: ['system:nodes'] })
  t.same((await answer(world, 'renews')).conditions, ['Approved AutoApproved'])
})

test('a certificate that has ended is renewed by its key, on any board; an Event informs the operator', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', annotations: hardware('one') })
  const lapsed = { user: 'system:node:pi-1', groups: ['bramble:lapsed-nodes'] }
  await ask(world, { name: 'moved', asks: 'pi-1', ...lapsed, board: 'two' })
  t.same((await answer(world, 'moved')).conditions, ['Approved AutoApproved'])
  t.match((await world.store.list('events')).items[0], {
    reason: 'MachineChanged',
    message: /board serial two, before board serial one/,
  })
})

test('right after a restart, when no lease is known, a Ready node’s name is refused for one grace more', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', annotations: hardware('one') })
  world.silence('pi-1')
  await world.store.delete('leases', { namespace: 'kube-node-lease', name: 'pi-1' })
  await ask(world, { name: 'clone', asks: 'pi-1', board: 'two' })
  t.same((await answer(world, 'clone')).conditions, ['Denied NodeNameInUse'])
  await world.pass(51)
  await ask(world, { name: 'spare', asks: 'pi-1', board: 'two' })
  t.same((await answer(world, 'spare')).conditions, ['Waiting NodeExists'])
})

test('a node renews its own certificate and asks for no other’s', async (t) => {
  const world = opened(t)
  const node = { user: 'system:node:pi-1', groups: ['system:nodes'] }
  await ask(world, { name: 'own', asks: 'pi-1', ...node })
  await ask(world, { name: 'other', asks: 'pi-2', ...node })
  t.same((await answer(world, 'own')).conditions, ['Approved AutoApproved'])
  t.same((await answer(world, 'other')).conditions, ['Denied InvalidRequest'])
})

test('a certificate that was revoked brings no other one, however long its request waits; a token does', async (t) => {
  const world = opened(t)
  const lapsed = { user: 'system:node:pi-1', groups: ['bramble:lapsed-nodes'] }
  await ask(world, { name: 'waits', asks: 'pi-1', ...lapsed })
  t.same((await answer(world, 'waits')).conditions, [], 'no node has this machine')
  await world.clock.advance(5_000)
  await revoke(world, 'system:node:pi-1', 'Stolen')
  const csr = await world.store.get('certificatesigningrequests', { namespace: '', name: 'waits' })
  if (csr === undefined) return t.fail('the request is gone')
  const conditions = [{ type: 'Approved', status: 'True', reason: 'KubectlApprove' }]
  await world.store.updateStatus('certificatesigningrequests', { ...csr, status: { conditions } })
  await world.clock.settle()
  t.match(await answer(world, 'waits'), {
    conditions: ['Approved KubectlApprove', 'Failed Revoked'],
    certificate: undefined,
  })
  await ask(world, { name: 'same second', asks: 'pi-1', user: 'system:node:pi-1', groups: ['system:nodes'] })
  t.same((await answer(world, 'same second')).conditions, ['Denied Revoked'])
  await ask(world, { name: 'joins', asks: 'pi-1' })
  t.same((await answer(world, 'joins')).conditions, ['Approved AutoApproved'])
})

test('a wrong request is refused; one of somebody else, or for another signer, waits', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'wrong', asks: '!' })
  await ask(world, { name: 'admin', asks: 'pi-3', user: 'kubernetes-admin', groups: ['system:masters'] })
  await ask(world, { name: 'serving', asks: 'pi-3', signerName: 'kubernetes.io/kubelet-serving' })
  t.same((await answer(world, 'wrong')).conditions, ['Denied InvalidRequest'])
  t.same((await answer(world, 'admin')).conditions, [])
  t.same((await answer(world, 'serving')).conditions, [])
})

test('an operator’s approval is signed', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'admin', asks: 'pi-3', user: 'kubernetes-admin', groups: ['system:masters'] })
  const csr = await world.store.get('certificatesigningrequests', { namespace: '', name: 'admin' })
  if (csr === undefined) return t.fail('the request is gone')
  const conditions = [
    { type: 'Approved', status: 'True', reason: 'KubectlApprove', lastUpdateTime: '2026-01-01T00:00:00Z' },
  ]
  await world.store.updateStatus('certificatesigningrequests', { ...csr, status: { conditions } })
  await world.clock.settle()
  t.equal((await answer(world, 'admin')).certificate, 'certificate of pi-3 for a year')
})

test('answered requests are cleared away after an hour, pending ones after a day', async (t) => {
  const world = opened(t)
  await ask(world, { name: 'answered', asks: 'pi-1' })
  await ask(world, { name: 'pending', asks: 'pi-2', user: 'someone', groups: [] })
  const names = async () =>
    (await world.store.list('certificatesigningrequests')).items.map(({ metadata }) => metadata.name)
  await world.clock.advance(3_600_000)
  t.same(await names(), ['answered', 'pending'])
  await world.clock.advance(3_600_000)
  t.same(await names(), ['pending'])
  await world.clock.advance(23 * 3_600_000)
  t.same(await names(), [])
})

test('expired tokens are removed, others stay', async (t) => {
  const world = opened(t)
  const token = { secret: '0123456789abcdef', usages: ['authentication'], groups: [] } as const
  const expiration = rfc3339Micro(world.clock.wallMs() + 600_000)
  await world.store.create('secrets', encodeToken({ ...token, id: 'short0', expiration }))
  await world.store.create('secrets', encodeToken({ ...token, id: 'ever00' }))
  const names = async () => (await world.store.list('secrets')).items.map(({ metadata }) => metadata.name)
  await world.clock.advance(599_000)
  t.equal((await names()).length, 2)
  await world.clock.advance(62_000)
  t.same(await names(), ['bootstrap-token-ever00'])
})

test('a removal that etcd did not answer is tried again, and ends no controller', async (t) => {
  const world = fleet(t)
  const { store } = uncertainStore(world.store, false)
  const parts = { ...world, store }
  t.teardown(world.start(certificateController({ ...parts, signer, clientSigner, checkRequest }), tokenCleaner(parts)))
  await ask(world, { name: 'pending', asks: 'pi-2', user: 'someone', groups: [] })
  const token = { secret: '0123456789abcdef', usages: ['authentication'], groups: [] } as const
  const expiration = rfc3339Micro(world.clock.wallMs() + 600_000)
  await world.store.create('secrets', encodeToken({ ...token, id: 'short0', expiration }))
  await world.clock.advance(27 * 3_600_000)
  t.same((await world.store.list('secrets')).items, [])
  t.same((await world.store.list('certificatesigningrequests')).items, [])
})

const peopleSignerName = 'kubernetes.io/kube-apiserver-client'
const requestOfEve = createClientCSR({ user: 'eve', groups: ['ops'] }, newKey())

test('a certificate for a person is signed when an operator has approved it, and never before', async (t) => {
  const world = opened(t)
  const person = { user: 'adam', groups: ['system:authenticated'], signerName: peopleSignerName }
  await ask(world, { name: 'eve', asks: requestOfEve, ...person })
  t.match(await answer(world, 'eve'), { conditions: [], certificate: undefined })
  await approve(world, 'eve')
  t.match(await answer(world, 'eve'), { certificate: 'certificate of eve from 0' })

  await ask(world, { name: 'by-token', asks: requestOfEve, signerName: peopleSignerName })
  t.match(await answer(world, 'by-token'), { conditions: [], certificate: undefined }, 'also one of a bootstrap token')

  await ask(world, { name: 'wrong', asks: 'nonsense', ...person })
  await approve(world, 'wrong')
  t.match((await answer(world, 'wrong')).conditions, ['Approved KubectlApprove', 'Failed SignerValidationFailure'])
})

test('a person whose certificates were revoked gets one that is valid since then', async (t) => {
  const world = opened(t)
  await revoke(world, 'eve', 'Stolen')
  const beforeMs = Math.floor(world.clock.wallMs() / 1000) * 1000
  await ask(world, { name: 'again', asks: requestOfEve, user: 'adam', groups: [], signerName: peopleSignerName })
  await approve(world, 'again')
  t.match(await answer(world, 'again'), { certificate: `certificate of eve from ${beforeMs}` })
})
