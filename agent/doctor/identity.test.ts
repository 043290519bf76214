import { test } from 'tap'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import type { AgentIdentity } from '../join/identity.ts'
import { verdicts } from '../testing/verdicts.ts'
import { marksFindings } from './clones.ts'
import { identityFindings } from './identity.ts'

const day = 86_400_000

test('the certificates of a node', async (t) => {
  const nowMs = Date.now()
  const authority = await openAuthority(`${testFolder(t)}/a`, nowMs)
  const other = await openAuthority(`${testFolder(t)}/b`, nowMs)
  const made = issueNode(authority, { nodeName: 'pi-01', nowMs, lifeMs: 100 * day })
  const identity: AgentIdentity = {
    nodeName: 'pi-01',
    apiUrl: 'https://fleet:6443',
    mqttUrl: 'mqtts://fleet:8883',
    ca: authority.certificate,
    ...made,
  }
  const at = (days: number, changes: Partial<AgentIdentity> = {}) =>
    identityFindings({ ...identity, ...changes }, nowMs + days * day)
  t.same(verdicts(at(0)), { identity: 'ok', 'node-certificate': 'ok', authority: 'ok' })
  t.match(at(95)[1], { verdict: 'warning', found: /4 days from now/, remedy: /renews/ })
  t.match(at(101)[1], { verdict: 'problem', found: /ended on/, remedy: /^Check the clock/ })
  t.match(at(-1), [{}, { verdict: 'problem', found: /it is behind/ }, { verdict: 'problem', found: /it is behind/ }])
  t.match(at(3640)[2], { verdict: 'warning' })
  t.match(at(3660)[2], { verdict: 'problem' })
  t.match(at(0, { nodeName: 'pi-02' })[0], { verdict: 'problem', found: /not that of node pi-02/ })
  t.match(at(0, { ca: other.certificate })[1], { verdict: 'problem', found: /not made by/ })
  t.match(at(0, { ca: `${other.certificate}${authority.certificate}` })[1], { verdict: 'ok' }, 'one of several')
  t.match(at(0, { key: issueNode(authority, { nodeName: 'pi-01', nowMs }).key })[0], {
    verdict: 'problem',
    found: /key/,
  })
  t.match(at(0, { certificate: 'nothing' }), [{ verdict: 'problem', found: /damaged/ }])
  t.match(at(0, { ca: '' }), [{ verdict: 'problem', found: /damaged/ }])
  t.match(identityFindings(undefined, nowMs), [{ verdict: 'warning', remedy: /--print-join-command/ }])
})

test('names and marks that many machines share', async (t) => {
  const marks = { hostname: 'pi-01', machineID: '3d1219c7c4c5404aaa1f6d2a48adfda4\n', nodeName: undefined }
  const of = (changes: Partial<Parameters<typeof marksFindings>[0]>) =>
    verdicts(marksFindings({ ...marks, ...changes }))
  t.same(of({}), { hostname: 'ok', 'machine-id': 'ok' })
  t.same(of({ nodeName: 'pi-01', hostname: 'PI-01' }), { hostname: 'ok', 'machine-id': 'ok' })
  t.same(of({ nodeName: 'pi-02' }), { hostname: 'warning', 'machine-id': 'ok' })
  t.same(of({ hostname: 'raspberrypi', machineID: 'uninitialized\n' }), {
    hostname: 'warning',
    'machine-id': 'warning',
  })
  t.same(of({ hostname: 'my_pi', machineID: undefined }), { hostname: 'problem', 'machine-id': 'warning' })
  t.same(of({ hostname: undefined, machineID: '0'.repeat(32) }), { hostname: 'unknown', 'machine-id': 'warning' })
})
