import { test } from 'tap'
import { aNode } from '../testing/builders.ts'
import { updateReportOf, wantedReleaseOf } from './agent-update.ts'

const release = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64) }
const wanted = (written: unknown) =>
  wantedReleaseOf(
    aNode({
      name: 'pi-1',
      annotations: { 'bramble.dev/agent-release': typeof written === 'string' ? written : JSON.stringify(written) },
    }),
  )
const reported = (written: unknown) =>
  updateReportOf(aNode({ name: 'pi-1', annotations: { 'bramble.dev/agent-update': JSON.stringify(written) } }))

test('the release that a node may run is read from the annotation of the controller', async (t) => {
  t.same(wanted(release), release)
  t.same(wanted({ ...release, more: 'of a later version' }), release)
  t.equal(wantedReleaseOf(aNode({ name: 'pi-1' })), undefined)
  t.same(wanted({ ...release, admittedAt: '2026-01-01T00:00:00Z', failures: 2 }), release)
  t.equal(wanted({ ...release, withdrawn: true }), undefined)
})

test('what cannot be a release is ignored', async (t) => {
  for (const written of [
    '{',
    'null',
    { ...release, digest: 'a' },
    { ...release, digest: '/'.repeat(64) },
    { ...release, sequence: 0 },
    { ...release, sequence: 1.5 },
    { ...release, sequence: 2 ** 60 },
    { ...release, version: '../../etc' },
    { ...release, version: '' },
    { version: '1.5.0' },
  ])
    t.equal(wanted(written), undefined, JSON.stringify(written))
})

test('a report names the committed version, and what became of a release', async (t) => {
  const report = { version: '1.4.0', sequence: 14, release: { version: '1.5.0', sequence: 15, outcome: 'trial' } }
  t.same(reported(report), report)
  t.same(reported({ version: '1.4.0', sequence: 14 }), { version: '1.4.0', sequence: 14 })
  t.equal(reported({ ...report, sequence: -1 }), undefined)
  t.equal(reported({ ...report, release: { ...report.release, outcome: 'well' } }), undefined)
})
