import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { Node } from '../../../api/node.ts'
import { aLease, aNode } from '../../../api/testing/builders.ts'
import {
  answeredRequest,
  type CertificateStep,
  type Claimed,
  certificateStep,
  copyWarning,
  expectedNodeName,
  hardwareOf,
  isHistory,
  movedWarning,
  nameTakenWarning,
} from './certificate-approval.ts'

const nowMs = Date.parse('2026-06-01T12:00:00Z')
const ago = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()

const withToken = { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
const asNode = { username: 'system:node:pi-1', groups: ['system:nodes'] }
const asLapsed = { username: 'system:node:pi-1', groups: ['bramble:lapsed-nodes'] }
const asAdministrator = { username: 'kubernetes-admin', groups: ['system:masters'] }
const provesNode = { extra: { 'bramble.dev/proven-node': ['pi-1'] } }

type Spec = Partial<CertificateSigningRequest['spec']>
type Condition = { readonly type: string; readonly lastUpdateTime?: string }

function request(spec: Spec, ...conditions: readonly Condition[]): CertificateSigningRequest {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1', creationTimestamp: ago(10) },
    spec: { request: '', signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: [], ...spec },
    ...(conditions.length > 0 && { status: { conditions: conditions.map((one) => ({ ...one, status: 'True' })) } }),
  }
}

const valid = { ok: true, nodeName: 'pi-1', keyHash: 'its key' } as const
const invalid = { ok: false, reason: 'organization must be exactly system:nodes' } as const
/** A name that no node has, long after the start of the controller. */
const free: Claimed = {
  node: undefined,
  lease: undefined,
  nowMs,
  graceMs: 50_000,
  promisedTo: undefined,
  sinceStartMs: 3_600_000,
  quarantine: false,
  tokenEnded: false,
  hasPods: false,
  acceptsCheckpoints: false,
  revokedBeforeMs: undefined,
}
const silent: Claimed = { ...free, node: aNode({ ready: 'Unknown' }), lease: aLease({ renewTime: ago(3_600) }) }
const live: Claimed = { ...free, node: aNode(), lease: aLease({ renewTime: ago(10) }) }
const approved = { type: 'Approved' }

type Case = {
  readonly title: string
  readonly request: CertificateSigningRequest
  readonly claimed?: Partial<Claimed>
  readonly checked?: typeof valid | typeof invalid
  readonly step: Partial<CertificateStep>
}

function decides(t: { match(found: unknown, wanted: unknown, message: string): unknown }, cases: readonly Case[]) {
  for (const { title, request, claimed = {}, checked = valid, step } of cases) {
    t.match(certificateStep(request, checked, { ...free, ...claimed }), step, title)
  }
}

test('a bootstrap token gives a name that is free, and no other', async (t) => {
  const taken = { step: 'deny', reason: 'NodeNameInUse', isNameTaken: true } as const
  const exists = { step: 'wait', reason: 'NodeExists', isNameTaken: true } as const
  const token = request(withToken)
  decides(t, [
    { title: 'free', request: token, step: { step: 'approve' } },
    { title: 'of a live node', request: token, claimed: live, step: taken },
    { title: 'of a silent node', request: token, claimed: silent, step: exists },
    { title: 'Ready, heartbeat late', request: token, claimed: { ...live, lease: silent.lease }, step: exists },
    { title: 'Ready, no heartbeat known', request: token, claimed: { ...live, lease: undefined }, step: exists },
    {
      title: 'Ready, the last heartbeat exactly a grace ago',
      request: token,
      claimed: { ...live, lease: aLease({ renewTime: ago(50) }) },
      step: taken,
    },
    {
      title: 'Ready, a controller that has run for just a grace',
      request: token,
      claimed: { ...live, lease: undefined, sinceStartMs: 50_000 },
      step: taken,
    },
    { title: 'silent, after a restart', request: token, claimed: { ...silent, sinceStartMs: 0 }, step: exists },
    { title: 'free, after a restart', request: token, claimed: { sinceStartMs: 0 }, step: { step: 'approve' } },
    { title: 'promised to another key', request: token, claimed: { promisedTo: 'another key' }, step: taken },
    { title: 'promised to this key', request: token, claimed: { promisedTo: 'its key' }, step: { step: 'approve' } },
    {
      title: 'the store may lack its Node',
      request: token,
      claimed: { acceptsCheckpoints: true },
      step: { step: 'wait', reason: 'AcceptsCheckpoints' },
    },
    {
      title: 'pods of a deleted Node are left',
      request: token,
      claimed: { hasPods: true },
      step: { step: 'wait', reason: 'PodsBound', againMs: 10_000 },
    },
    {
      title: 'free, a token that has ended',
      request: token,
      claimed: { tokenEnded: true },
      step: { step: 'deny', reason: 'TokenEnded' },
    },
    {
      title: 'not a valid request',
      request: token,
      checked: invalid,
      step: { step: 'deny', reason: 'InvalidRequest', message: invalid.reason },
    },
  ])
})

test('the key of a node gives its name again, live or not; no other node’s key does', async (t) => {
  const taken = { step: 'deny', reason: 'NodeNameInUse' } as const
  decides(t, [
    { title: 'renewal', request: request(asNode), claimed: live, step: { step: 'approve' } },
    {
      title: 'token and key',
      request: request({ ...withToken, ...provesNode }),
      claimed: live,
      step: { step: 'approve' },
    },
    {
      title: 'the key of another node',
      request: request({ ...withToken, extra: { 'bramble.dev/proven-node': ['pi-2'] } }),
      claimed: live,
      step: taken,
    },
    {
      title: 'another node',
      request: request({ ...asNode, username: 'system:node:pi-2' }),
      claimed: live,
      step: taken,
    },
    {
      title: 'the name of a node without its group',
      request: request({ username: 'system:node:pi-1', groups: [] }),
      claimed: live,
      step: { step: 'none' },
    },
    { title: 'a user without a name', request: request({}), claimed: live, step: { step: 'none' } },
  ])
})

test('a certificate that has ended is renewed by its key, where its Node exists and no operator decides', async (t) => {
  decides(t, [
    { title: 'a Node', request: request(asLapsed), claimed: silent, step: { step: 'approve' } },
    { title: 'no Node', request: request(asLapsed), step: { step: 'none' } },
    {
      title: 'quarantine',
      request: request(asLapsed),
      claimed: { ...silent, quarantine: true },
      step: { step: 'none' },
    },
    {
      title: 'quarantine is not for those that renew in time',
      request: request(asNode),
      claimed: { ...live, quarantine: true },
      step: { step: 'approve' },
    },
    {
      title: 'not a valid request',
      request: request(asLapsed),
      claimed: silent,
      checked: invalid,
      step: { step: 'deny', reason: 'InvalidRequest' },
    },
  ])
})

test('what is answered, for another signer, or asked by a person is left alone', async (t) => {
  const issued = { ...request(withToken, approved), status: { certificate: 'LS0t' } }
  decides(t, [
    { title: 'issued', request: issued, step: { step: 'none' } },
    { title: 'denied', request: request(withToken, { type: 'Denied' }), step: { step: 'none' } },
    {
      title: 'denied after approval',
      request: request(withToken, approved, { type: 'Denied' }),
      step: { step: 'none' },
    },
    { title: 'failed', request: request(withToken, approved, { type: 'Failed' }), step: { step: 'none' } },
    {
      title: 'another signer',
      request: request({ ...withToken, signerName: 'kubernetes.io/kubelet-serving' }, approved),
      step: { step: 'none' },
    },
    { title: 'a person', request: request(asAdministrator), step: { step: 'none' } },
    {
      title: 'waits, and may be decided again',
      request: request(withToken, { type: 'Waiting' }),
      step: { step: 'approve' },
    },
  ])
})

test('an approved request is signed; a name given to another key ends the earlier certificates', async (t) => {
  const sign = (replaces: boolean) => ({ step: 'sign', nodeName: 'pi-1', replaces }) as const
  decides(t, [
    { title: 'a new node', request: request(withToken, approved), step: sign(false) },
    { title: 'a spare machine', request: request(withToken, approved), claimed: silent, step: sign(true) },
    { title: 'the node itself', request: request(asNode, approved), claimed: live, step: sign(false) },
    {
      title: 'the node itself, with a token',
      request: request({ ...withToken, ...provesNode }, approved),
      claimed: live,
      step: sign(false),
    },
    { title: 'ended, then approved', request: request(asLapsed, approved), claimed: silent, step: sign(false) },
    { title: 'by a person', request: request(asAdministrator, approved), claimed: live, step: sign(false) },
    {
      title: 'not a valid request',
      request: request(withToken, approved),
      checked: invalid,
      step: { step: 'fail', reason: 'SignerValidationFailure', message: invalid.reason },
    },
  ])
})

test('a revoked certificate brings no other one; a token, or one issued since, does', async (t) => {
  const before = (seconds: number) => ({ ...silent, revokedBeforeMs: nowMs - seconds * 1000 })
  const denied = { step: 'deny', reason: 'Revoked' } as const
  decides(t, [
    { title: 'asked before', request: request(asNode), claimed: before(5), step: denied },
    { title: 'asked in the same second', request: request(asNode), claimed: before(10), step: denied },
    { title: 'asked after', request: request(asNode), claimed: before(11), step: { step: 'approve' } },
    { title: 'ended, asked before', request: request(asLapsed), claimed: before(5), step: denied },
    {
      title: 'approved meanwhile',
      request: request(asNode, approved),
      claimed: before(5),
      step: { step: 'fail', reason: 'Revoked' },
    },
    {
      title: 'a token',
      request: request(withToken),
      claimed: { revokedBeforeMs: nowMs - 5_000 },
      step: { step: 'approve' },
    },
  ])
})

test('what would be revoked in the future is not signed, unless the clock cannot be right', async (t) => {
  const ahead = (ms: number) => ({ revokedBeforeMs: nowMs + ms })
  const denied = { step: 'deny', reason: 'RevokedAhead' } as const
  decides(t, [
    { title: 'ahead', request: request(withToken), claimed: ahead(300_001), step: denied },
    {
      title: 'as far as clocks differ',
      request: request(withToken),
      claimed: ahead(300_000),
      step: { step: 'approve' },
    },
    {
      title: 'approved meanwhile',
      request: request(withToken, approved),
      claimed: ahead(300_001),
      step: { step: 'fail', reason: 'RevokedAhead' },
    },
    {
      title: 'in 1970',
      request: request(withToken),
      claimed: { nowMs: 1_000, revokedBeforeMs: nowMs },
      step: { step: 'approve' },
    },
  ])
  const step = certificateStep(request(withToken), valid, { ...free, ...ahead(3_600_000) })
  t.match(step, {
    message: /are revoked until 2026-06-01T13:00:00.000Z, and the controller's clock shows 2026-06-01T12/,
  })
})

test('a node, or one whose certificate has ended, may ask for its own name only', async (t) => {
  t.equal(expectedNodeName(request(asNode)), 'pi-1')
  t.equal(expectedNodeName(request(asLapsed)), 'pi-1')
  for (const other of [withToken, asAdministrator, {}]) t.equal(expectedNodeName(request(other)), undefined)
})

test('a request is history an hour after its answer, or a day after it was asked', async (t) => {
  const hour = 3_600
  const pending = (seconds: number) => ({
    ...request(withToken, { type: 'Waiting', lastUpdateTime: ago(2 * 24 * hour) }),
    metadata: { name: 'csr-1', creationTimestamp: ago(seconds) },
  })
  t.equal(isHistory(pending(24 * hour), nowMs), false)
  t.equal(isHistory(pending(24 * hour + 1), nowMs), true)
  t.equal(isHistory({ ...pending(25 * hour), status: {} }, nowMs), true)
  t.equal(isHistory({ ...request(withToken), metadata: pending(25 * hour).metadata }, nowMs), true)
  const answered = (...seconds: readonly number[]) =>
    request(withToken, ...seconds.map((age) => ({ type: 'Approved', lastUpdateTime: ago(age) })))
  t.equal(isHistory(answered(hour), nowMs), false)
  t.equal(isHistory(answered(hour + 1), nowMs), true)
  t.equal(isHistory(answered(hour + 1, 5), nowMs), false, 'failed a moment ago')
  t.equal(isHistory(answered(hour + 1, hour + 1), nowMs), true)
  t.equal(isHistory(request(withToken, { type: 'Approved' }), nowMs), false, 'answered at a time that is not known')
})

test('an answer is added to those before it, and ends the waiting', async (t) => {
  const now = '2026-06-01T12:00:00Z'
  const answer = { type: 'Denied', reason: 'NodeNameInUse', message: 'node name pi-1 is in use' } as const
  const condition = { ...answer, status: 'True', lastUpdateTime: now, lastTransitionTime: now }
  t.same(answeredRequest(request(withToken), answer, now).status?.conditions, [condition])
  const waiting = request(withToken, approved, { type: 'Waiting' })
  t.same(answeredRequest(waiting, answer, now).status?.conditions, [{ ...approved, status: 'True' }, condition])
})

const machine = (identity: object, name = 'pi-1'): Node =>
  aNode({ name, annotations: { 'bramble.dev/hardware-identity': JSON.stringify(identity) } })

test('the operator reads how both machines describe themselves, and whether a card was copied', async (t) => {
  const first = machine({ boardSerial: 'one', machineID: 'as-flashed' })
  const taken = (node: Node | undefined, asker: object) => nameTakenWarning('pi-1', 'csr-1', node, machine(asker))
  const copied = /Both have the same machine-id, so one card is a copy of the other/
  t.match(taken(first, { boardSerial: 'two', machineID: 'as-flashed' }), /board serial one.*board serial two/)
  t.match(taken(first, { boardSerial: 'two', machineID: 'as-flashed' }), copied)
  t.notMatch(taken(first, { boardSerial: 'two', machineID: 'other' }), copied)
  t.match(taken(first, {}), /kubectl delete node pi-1' before it joins, or 'kubectl certificate approve csr-1'/)
  t.match(taken(undefined, { boardSerial: 'two' }), /a machine that shows no identity.*board serial two/)
})

test('a key on another machine than before is reported; without a mark of both nothing is', async (t) => {
  const first = machine({ boardSerial: 'one' })
  t.match(movedWarning(machine({ boardSerial: 'two' }), first), /board serial two, before board serial one/)
  t.equal(movedWarning(machine({ boardSerial: 'one' }), first), undefined)
  t.equal(movedWarning(machine({}), first), undefined)
  t.equal(movedWarning(machine({ boardSerial: 'two' }), aNode()), undefined)
  t.equal(movedWarning(machine({ boardSerial: 'two' }), undefined), undefined)
})

test('a machine-id of another node is reported with the names of at most five', async (t) => {
  const copy = (name: string) => machine({ boardSerial: name, machineID: 'as-flashed' }, name)
  const ours = { boardSerial: 'new', machineID: 'as-flashed' }
  t.equal(copyWarning(ours, [machine({ boardSerial: 'one', machineID: 'its own' })]), undefined)
  t.equal(copyWarning(ours, []), undefined)
  t.match(copyWarning(ours, [copy('a'), machine({ machineID: 'b' }), copy('c')]), /is that of a, c too/)
  t.match(copyWarning(ours, ['a', 'b', 'c', 'd', 'e', 'f'].map(copy)), /is that of a, b, c, d, e too/)
})

test('an identity that cannot be read identifies nothing', async (t) => {
  t.same(hardwareOf(machine({ boardSerial: 'one' })), { boardSerial: 'one' })
  t.same(hardwareOf(machine({ boardSerial: 5 })), {})
  t.same(hardwareOf(aNode({ annotations: { 'bramble.dev/hardware-identity': '{' } })), {})
  t.same(hardwareOf({ ...aNode(), metadata: { name: 'pi-1' } }), {})
})
