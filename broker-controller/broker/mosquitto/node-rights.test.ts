import { test } from 'tap'
import type { RecordedCertificate } from '../../store/certificates/issued-certificates.ts'
import type { Revocation } from '../../store/revocations.ts'
import { nodeRights } from './node-rights.ts'

const nowMs = Date.parse('2026-06-01T00:00:00Z')
const dayMs = 24 * 3600_000

function aCertificate(node: string, { dayOf = -1, serial = 'a1', authority = 'first', lastsDays = 365 } = {}) {
  const notBeforeMs = nowMs + dayOf * dayMs
  const user = `system:node:${node}`
  return {
    user,
    serial,
    authority,
    notBeforeMs,
    notAfterMs: notBeforeMs + lastsDays * dayMs,
  } satisfies RecordedCertificate
}

const unknown = (node: string, authority = 'first'): RecordedCertificate => ({
  ...aCertificate(node, { authority }),
  serial: undefined,
  notBeforeMs: 0,
})

function rights(
  facts: {
    readonly nodes?: string[]
    readonly issued?: RecordedCertificate[]
    readonly revoked?: { readonly [node: string]: number }
    readonly listed?: string[]
  },
  trusted = ['first'],
) {
  const revocations = Object.entries(facts.revoked ?? {}).map(([node, day]): [string, Revocation] => [
    `system:node:${node}`,
    { user: `system:node:${node}`, beforeMs: nowMs + day * dayMs, reason: 'Revoked' },
  ])
  const { nodes, withheld, revoked } = nodeRights({
    nodes: facts.nodes ?? [],
    issued: facts.issued ?? [],
    revocations: new Map(revocations),
    trusted: new Set(trusted),
    signer: trusted[0] ?? '',
    listed: new Set(facts.listed),
    nowMs,
  })
  return { nodes, withheld, serials: revoked.map(({ serial }) => serial) }
}

test('a Node has rights, and a machine that joined and is not registered yet', async (t) => {
  const issued = [
    aCertificate('joins'),
    aCertificate('ended', { dayOf: -400 }),
    aCertificate('pi-2', { authority: 'old' }),
  ]
  t.same(rights({ nodes: ['pi-1'], issued }), { nodes: ['joins', 'pi-1'], withheld: [], serials: [] })
})

test('a revoked node has no rights until it has another certificate; the earlier ones are in the list', async (t) => {
  const first = aCertificate('pi-1', { dayOf: -9, serial: 'a1' })
  const second = aCertificate('pi-1', { dayOf: -5, serial: 'a2' })
  const revoked = { 'pi-1': -5 }
  t.same(rights({ nodes: ['pi-1'], issued: [first], revoked }), { nodes: [], withheld: [], serials: ['a1'] })
  t.same(rights({ nodes: ['pi-1'], issued: [first, second], revoked }), {
    nodes: ['pi-1'],
    withheld: [],
    serials: ['a1'],
  })
})

test('without the number of a revoked certificate its name has no rights, until its authority is not trusted any more', async (t) => {
  const fresh = aCertificate('pi-1', { serial: 'b1', authority: 'second' })
  const facts = { nodes: ['pi-1', 'pi-2'], issued: [unknown('pi-1'), unknown('pi-2'), fresh], revoked: { 'pi-1': -5 } }
  t.same(rights(facts, ['first', 'second']), { nodes: ['pi-2'], withheld: ['pi-1'], serials: [] })
  t.same(rights(facts, ['second']), { nodes: ['pi-1', 'pi-2'], withheld: [], serials: [] })
})

test('a deleted node has no rights', async (t) => {
  const issued = [aCertificate('pi-1'), unknown('pi-2')]
  t.same(rights({ issued, revoked: { 'pi-1': 0, 'pi-2': 0 } }), { nodes: [], withheld: [], serials: ['a1'] })
})

test('users that are not nodes have no rights', async (t) => {
  const odd = { ...aCertificate('pi-1'), user: 'system:node:a/b' }
  t.same(rights({ issued: [odd, { ...odd, user: 'jane' }] }).nodes, [])
})

test('certificates without a number that are later than the revocation take no rights away', async (t) => {
  const fresh = aCertificate('pi-1', { dayOf: -2 })
  const issued = [fresh, { ...fresh, serial: undefined }]
  t.same(rights({ nodes: ['pi-1'], issued, revoked: { 'pi-1': -5 } }).nodes, ['pi-1'])
  t.same(rights({ nodes: ['pi-1'], issued, revoked: { 'pi-1': -1 } }).withheld, ['pi-1'])
})

test('a revoked certificate of the previous authority that is not in its last list keeps its name from all rights', async (t) => {
  const issued = [
    aCertificate('pi-1', { dayOf: -9, serial: 'a1', authority: 'first' }),
    aCertificate('pi-1', { dayOf: -1, serial: 'b1', authority: 'second' }),
  ]
  const facts = { nodes: ['pi-1'], issued, revoked: { 'pi-1': -3 } }
  t.match(rights(facts, ['second', 'first']), { nodes: [], withheld: ['pi-1'] })
  t.match(rights({ ...facts, listed: ['a1'] }, ['second', 'first']), { nodes: ['pi-1'], withheld: [] })
  t.match(rights(facts, ['second']), { nodes: ['pi-1'], withheld: [] }, 'it is not trusted any more')
})
